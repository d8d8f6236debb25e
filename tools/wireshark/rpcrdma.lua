-- SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
--
-- RPC-over-RDMA version 2 (draft-ietf-nfsv4-rpcrdma-version-two-07, "the draft") for Wireshark and tshark, on InfiniBand, RoCE
-- and iWARP. Version 1 is Wireshark's own "rpcordma". The other files lie beside this one, which loads them; from the plugins
-- folder Wireshark does so once more.

local rpcrdma = _G.rpcrdma or {}
_G.rpcrdma = rpcrdma
local directory = debug.getinfo(1, "S").source:match("^@(.*)rpcrdma%.lua$")
for _, name in ipairs({ "moved", "header", "version_1" }) do
    dofile(directory .. "rpcrdma_" .. name .. ".lua")
end

local moved, header = rpcrdma.moved, rpcrdma.header
local v2, f, e = header.proto, header.fields, header.experts
local VERSION, PREFIX_BYTES = 2, 16
local ERROR, GRANT = 4, 5
local CALL_EXTERNAL, CALL_MIDDLE, CALL_INLINE, REPLY_EXTERNAL, REPLY_MIDDLE, REPLY_INLINE = 8, 9, 10, 11, 12, 13

-- What lower layers say of the packet: InfiniBand's transport header, and DDP's and RDMAP's headers.
local transport, opcode = Field.new("infiniband.bth"), Field.new("infiniband.bth.opcode")
local number, padding = Field.new("infiniband.bth.psn"), Field.new("infiniband.bth.padcnt")
local rdmap, last_flag = Field.new("iwarp_rdma.opcode"), Field.new("iwarp_ddp.last_flag")
local ddp, ddp_place, ulpdu = Field.new("iwarp_ddp"), Field.new("iwarp_ddp.mo"), Field.new("iwarp_mpa.ulpdulength")
local tagged_place = Field.new("iwarp_ddp.tagged_offset")

local rpc = Dissector.get("rpc")
-- Without a filter somewhere no fields are there while Wireshark reads a file, when what is known of a connection is gathered.
Listener.new("frame", "infiniband || iwarp_mpa")

-- Sends of a reliable connection: whether one begins and ends a message.
local SENDS = {
    [0] = { begins = true }, [1] = {}, [2] = { ends = true }, [3] = { ends = true }, [4] = { begins = true, ends = true },
    [5] = { begins = true, ends = true }, [0x16] = { ends = true }, [0x17] = { begins = true, ends = true },
}
local NUMBERS = 0x1000000
local HALF = 0x80000000
-- What stands for the sender's queue pair where the set-up of a connection was not captured.
local NO_PORT = 0xffffffff

-- What is known: of each direction of a connection by its name; of each frame with a Send; of each message of version 2.
local directions, frames, records
-- By connection, Calls that are not whole before what Read chunks have is moved; and those that are, by what made them so.
local waiting, completed
-- The frame whose Send was last offered to the heuristic dissectors.
local offered

function v2.init()
    directions, frames, records, waiting, completed, offered = {}, {}, {}, {}, {}, nil
    moved.init()
end

local function newest(field)
    local all = { field() }
    return all[#all] and all[#all].value
end

local function names(pinfo)
    local source = tostring(pinfo.net_src) .. " " .. pinfo.src_port
    local target = tostring(pinfo.net_dst) .. " " .. pinfo.dst_port
    local to, back = source .. " to " .. target, target .. " to " .. source
    return to, back, to < back and to or back
end

local function direction(name)
    directions[name] = directions[name] or { sent = 0 }
    return directions[name]
end

-- The difference of two words that only ever grow (the draft, section 4.2.1).
local function signed(difference)
    difference = difference % (2 * HALF)
    return difference < HALF and difference or difference - 2 * HALF
end

local MIDDLE = { [CALL_MIDDLE] = CALL_INLINE, [REPLY_MIDDLE] = REPLY_INLINE }
local CARRIES = { [CALL_MIDDLE] = true, [CALL_INLINE] = true, [REPLY_MIDDLE] = true, [REPLY_INLINE] = true }

-- Puts the parts of a continued message together (section 6.6.2). GRANT and ERROR may come in between.
local function continue(from, record, pinfo, kind, xid, remaining, payload)
    local open = from.open
    if kind == GRANT or kind == ERROR then
        return
    end
    if open and (open.ends ~= (MIDDLE[kind] or kind) or open.xid ~= xid) then
        record.wrong = "The continued message before is not complete"
        open, from.open = nil, nil
    end
    if open and payload and open.remaining - payload:len() ~= (remaining or 0) then
        record.wrong = string.format("%u octets remained, %u are here, %u remain", open.remaining, payload:len(),
                                     remaining or 0)
    end
    if MIDDLE[kind] then
        open = open or { ends = MIDDLE[kind], xid = xid, parts = ByteArray.new(), frames = {}, records = {} }
        if payload then
            open.parts:append(payload:bytes())
        end
        open.remaining = remaining
        open.frames[#open.frames + 1] = pinfo.number
        open.records[#open.records + 1] = record
        from.open = open
    elseif open then
        record.whole, record.frames = open.parts, open.frames
        if payload then
            record.whole:append(payload:bytes())
        end
        for _, each in ipairs(open.records) do
            each.reassembled_in = pinfo.number
        end
        from.open = nil
    end
end

-- Counts a message and the credits (section 4.2.1), once.
local function count(record, pinfo, kind, credit)
    local name, back = names(pinfo)
    local from, other = direction(name), direction(back)
    from.sent = from.sent + 1
    record.sequence = from.sent
    record.advance = from.credit and signed(credit - from.credit)
    if pinfo.src_port ~= NO_PORT then
        record.left = signed(credit - other.sent)
        -- One credit is there before any is told of, and a GRANT may exceed them by one (section 4.2.1.1).
        local limit = (other.credit or 1) + (kind == GRANT and 1 or 0)
        record.exceeds = signed(limit - from.sent) < 0
    end
    from.credit = credit
    return from
end

-- A stream with all that chunks have of it, if that was captured.
local function unreduced(stream, connection, chunks)
    if #chunks.call > 0 then
        stream = moved.gather(connection, chunks.call)
    end
    stream = stream and moved.with_reads(stream, connection, chunks.reads)
    return stream and ByteArray.new(stream, true)
end

-- Looks after what chunks have: it is moved later for a Call, and was moved before a Reply.
local function settle(record, reader, pinfo, kind, payload)
    local _, _, connection = names(pinfo)
    local stream = record.whole and record.whole:raw() or payload and payload:raw() or ""
    if kind == CALL_EXTERNAL or kind == CALL_INLINE then
        for _, segments in ipairs({ reader.call, reader.reads, reader.reply, table.unpack(reader.writes) }) do
            moved.expect(connection, segments)
        end
        if kind == CALL_EXTERNAL or reader.reduced then
            waiting[connection] = waiting[connection] or {}
            table.insert(waiting[connection], { record = record, stream = stream, call = reader.call, reads = reader.reads })
        end
    elseif kind == REPLY_EXTERNAL or reader.reduced then
        stream = kind == REPLY_INLINE and stream or moved.gather(connection, reader.reply)
        stream = stream and moved.with_writes(stream, connection, reader.writes)
        record.unreduced = stream and ByteArray.new(stream, true)
        for _, segments in ipairs({ reader.reply, table.unpack(reader.writes) }) do
            moved.forget(connection, segments)
        end
    end
end

-- Has an RPC message dissected. One that is malformed is shown as such, and then raises an error.
local function dissect(message, pinfo, tree)
    pcall(rpc.call, rpc, message, pinfo, tree)
end

-- Shows a Call that an RDMA Read has made whole.
local function complete(pinfo, tree, connection, ended)
    -- A frame may have two segments of iWARP.
    local key = pinfo.number .. " " .. tostring(newest(tagged_place))
    local record = completed[key]
    if ended and not record then
        for index, each in ipairs(waiting[connection] or {}) do
            local whole = unreduced(each.stream, connection, each)
            if whole then
                record = each.record
                record.unreduced, record.reassembled_in, completed[key] = whole, pinfo.number, record
                table.remove(waiting[connection], index)
                moved.forget(connection, each.call)
                moved.forget(connection, each.reads)
                break
            end
        end
    end
    if not record then
        return false
    end
    local item = tree:add(v2, "RPC-over-RDMA Version 2, a Call whose chunks were read")
    item:add(f.fragment, record.frame):set_generated()
    item:add(f.rpc_length, record.unreduced:len()):set_generated()
    dissect(record.unreduced:tvb("RPC message with its chunks"), pinfo, tree)
    return true
end

local function show_payload(reader, pinfo, root, tree, record, payload, kind, xid)
    for _, frame in ipairs(record.frames or {}) do
        tree:add(f.fragment, frame):set_generated()
    end
    if record.reassembled_in then
        tree:add(f.reassembled_in, record.reassembled_in):set_generated()
    end
    if payload then
        tree:add(f.payload, payload:len()):set_generated()
    end
    if MIDDLE[kind] then
        return
    end
    local message = record.whole and record.whole:tvb("Continued RPC message") or payload and payload:tvb()
    if CARRIES[kind] and (not message or message:len() < 8) then
        header.malformed("No RPC message")
    end
    if CARRIES[kind] and message(0, 4):uint() ~= xid then
        tree:add_proto_expert_info(e.xid)
    end
    if (reader.reduced or kind == REPLY_EXTERNAL) and record.unreduced and not record.reassembled_in then
        message = record.unreduced:tvb("RPC message with its chunks")
    elseif reader.reduced then
        -- To dissectors that know nothing of chunks it would be malformed.
        tree:add(f.reduced, message()):add_proto_expert_info(e.reduced)
        message = nil
    end
    if message then
        tree:add(f.rpc_length, message:len()):set_generated()
        dissect(message, pinfo, root)
    end
end

local function show_prefix(reader, tree, record)
    reader:word(tree, f.xid)
    reader:word(tree, f.version)
    local _, item = reader:word(tree, f.credit)
    if record.advance then
        item:add(f.advance, record.advance):set_generated()
    end
    if record.left then
        item:add(f.left, record.left):set_generated()
    end
    local _, typed = reader:word(tree, f.type)
    tree:add(f.sequence, record.sequence):set_generated()
    if record.exceeds then
        item:add_proto_expert_info(e.credit)
    end
    return typed
end

-- Shows a message of version 2.
local function show(tvb, pinfo, root)
    local xid, credit, kind = tvb(0, 4):uint(), tvb(8, 4):uint(), tvb(12, 4):uint()
    local key = pinfo.number .. " " .. tvb(0, PREFIX_BYTES):bytes():tohex()
    local record, from = records[key], nil
    if not record then
        record = { frame = pinfo.number }
        records[key] = record
        from = count(record, pinfo, kind, credit)
    end
    local name = header.types[kind] or "Header type " .. kind
    pinfo.cols.protocol = "RPCoRDMA2"
    pinfo.cols.info = string.format("%s XID 0x%08x", name, xid)
    local tree = root:add(v2, tvb(), string.format("RPC-over-RDMA Version 2, %s, XID 0x%08x", name, xid))
    local reader = header.reader(tvb)
    local typed = show_prefix(reader, tree, record)
    if not header.bodies[kind] then
        typed:add_proto_expert_info(e.type)
        return
    end
    local ok, problem = pcall(function()
        local more = header.bodies[kind](reader, tree)
        if more then
            pinfo.cols.info:append(", " .. more)
        end
        tree:set_len(reader.at)
        local rest = reader.at < tvb:len() and tvb(reader.at)
        if from then
            continue(from, record, pinfo, kind, xid, reader.remaining, rest)
            settle(record, reader, pinfo, kind, rest)
        end
        if record.wrong then
            tree:add_proto_expert_info(e.continuation, record.wrong)
        end
        if rest and not CARRIES[kind] then
            tree:add(f.trailing, rest):add_proto_expert_info(e.trailing)
            rest = nil
        end
        show_payload(reader, pinfo, root, tree, record, rest, kind, xid)
    end)
    if not ok and type(problem) ~= "table" then
        error(problem, 0)
    elseif not ok then
        pinfo.cols.info:append(" [Malformed]")
        tree:add_proto_expert_info(e.malformed, problem.reason)
    end
end

-- Shows a message if it is one of version 2: by its version, and by a type that there is, unless the sender speaks version 2
-- for sure.
local function try(tvb, pinfo, tree)
    if tvb:len() < PREFIX_BYTES or tvb(4, 4):uint() ~= VERSION then
        return false
    end
    local from = direction((names(pinfo)))
    if not from.speaks and not header.types[tvb(12, 4):uint()] then
        return false
    end
    from.speaks = true
    show(tvb, pinfo, tree)
    return true
end

-- Puts the packets of a Send together. A packet is of version 2 ("ours"), or not; a first or only one of a message says so.
local function assemble(message, pinfo, send, psn)
    local from = direction((names(pinfo)))
    local packet = {}
    frames[pinfo.number] = packet
    if from.latest and (psn - from.latest - 1) % NUMBERS >= NUMBERS / 2 then
        packet.again, packet.ours = true, from.speaks
        return packet
    end
    local follows = from.latest and psn == (from.latest + 1) % NUMBERS
    from.latest = psn
    if send.begins then
        local ours = message:len() >= 8 and message(4, 4):uint() == VERSION
        from.parts = ours and { bytes = ByteArray.new(), packets = {} }
    elseif not follows then
        from.parts = nil
    end
    if not from.parts then
        return packet
    end
    packet.ours = true
    if send.begins and send.ends then
        packet.only, from.parts = true, nil
        return packet
    end
    from.parts.bytes:append(message:bytes())
    from.parts.packets[#from.parts.packets + 1] = packet
    if send.ends then
        packet.whole = from.parts.bytes
        for _, each in ipairs(from.parts.packets) do
            each.part_of = pinfo.number
        end
        from.parts = nil
    end
    return packet
end

local function infiniband(tvb, pinfo, tree)
    local to, back, connection = names(pinfo)
    local ended = moved.infiniband(tvb, pinfo, connection, to, back)
    if ended ~= nil then
        return complete(pinfo, tree, connection, ended)
    end
    local send = SENDS[newest(opcode) or -1]
    if not send or tvb:len() <= newest(padding) then
        return false
    end
    offered = pinfo.number
    local message = tvb(0, tvb:len() - newest(padding)):tvb()
    local packet = frames[pinfo.number] or assemble(message, pinfo, send, newest(number))
    if not packet.ours then
        return false
    end
    if packet.only or packet.whole then
        return try(packet.only and message or packet.whole:tvb("Reassembled Send"), pinfo, tree)
    end
    pinfo.cols.protocol = "RPCoRDMA2"
    local text = "RPC-over-RDMA Version 2, " .. (packet.again and "sent again" or "part of a Send")
    local item = tree:add(v2, message(), text)
    if packet.part_of then
        item:add(f.part_of, packet.part_of):set_generated()
    end
    return true
end

-- The dissector of RDMAP puts the segments of a Send together, unless it is told not to.
local IWARP_SENDS = { [3] = true, [4] = true, [5] = true, [6] = true }
local function iwarp(tvb, pinfo, tree)
    local to, back, connection = names(pinfo)
    local ended = moved.iwarp(tvb, pinfo, connection, to, back)
    if ended ~= nil then
        return complete(pinfo, tree, connection, ended)
    end
    if not IWARP_SENDS[newest(rdmap) or -1] then
        return false
    end
    offered = pinfo.number
    return newest(last_flag) and try(tvb, pinfo, tree)
end

v2:register_heuristic("infiniband.payload", infiniband)
v2:register_heuristic("iwarp_ddp_rdmap", iwarp)

-- Wireshark's dissector of version 1 takes RDMA2_ERROR for an RDMA_ERROR, which has the same number, and shows nothing; it may
-- be asked first, since heuristic dissectors that have taken a message are.
function v2.dissector(tvb, pinfo, tree)
    local send = SENDS[newest(opcode) or -1]
    if offered == pinfo.number then
        return
    end
    if send and send.begins and send.ends then
        local before = transport()
        local behind = before.source(before.offset + before.len):tvb()
        local start, last = newest(opcode) == 0x17 and 4 or 0, behind:len() - newest(padding) - 4
        if last > start then
            try(behind(start, last - start):tvb(), pinfo, tree)
        end
    elseif IWARP_SENDS[newest(rdmap) or -1] and newest(last_flag) and newest(ddp_place) == 0 then
        local headers = { ddp() }
        local before = headers[#headers]
        local start, length = before.offset + before.len, newest(ulpdu) - before.len
        if length > 0 then
            try(before.source(start, length):tvb(), pinfo, tree)
        end
    end
end

register_postdissector(v2)
