-- SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
--
-- What Wireshark's own dissector of RPC-over-RDMA version 1 does not know: private data at connection set-up (RFC 8797) with
-- the block that says who pulls Replies, and Replies that the requester pulls (Documentation/reliable-reply.rst). rpcrdma.lua
-- loads this file.

local rpcrdma = _G.rpcrdma or {}
_G.rpcrdma = rpcrdma
if rpcrdma.version_1 then
    return
end
rpcrdma.version_1 = true

local private = Proto("rpcrdma_private", "RPC-over-RDMA Private Data")
local pull = Proto("rpcrdma_pull", "RPC-over-RDMA Pulled Reply")

local FORMAT, FORMAT_BYTES = "f6ab0e18", 8
local BLOCK, BLOCK_BYTES = "72a1c35e", 8
local VERSION, FLAGS = 1, 3
local RDMA_MSG, RDMA_NOMSG, RDMA_DONE = 0, 1, 3

local p = {
    version = ProtoField.uint8("rpcrdma_private.version", "Version"),
    invalidates = ProtoField.bool("rpcrdma_private.invalidates", "Remote invalidation", 8, nil, 1),
    sends = ProtoField.uint32("rpcrdma_private.sends", "Octets that it sends at most"),
    receives = ProtoField.uint32("rpcrdma_private.receives", "Octets that it receives at most"),
    block = ProtoField.none("rpcrdma_private.pulls", "Who pulls Replies"),
    block_version = ProtoField.uint8("rpcrdma_private.pulls.version", "Version"),
    may_pull = ProtoField.bool("rpcrdma_private.may_pull", "May pull", 8, nil, 1),
    may_provide = ProtoField.bool("rpcrdma_private.may_provide", "May provide", 8, nil, 2),
}
private.fields = p
local unknown = ProtoExpert.new("rpcrdma_private.unknown", "Counts as none: its version or a flag is unknown",
                                expert.group.PROTOCOL, expert.severity.WARN)
private.experts = { unknown }

local f = {
    octets = ProtoField.uint32("rpcrdma_pull.octets", "Octets that are provided"),
    segments = ProtoField.uint32("rpcrdma_pull.segments", "Segments"),
    call_in = ProtoField.framenum("rpcrdma_pull.call_in", "Call in", base.NONE, frametype.REQUEST),
    done_in = ProtoField.framenum("rpcrdma_pull.done_in", "Pulled by", base.NONE, frametype.ACK),
    reply_in = ProtoField.framenum("rpcrdma_pull.reply_in", "Reply in", base.NONE, frametype.RESPONSE),
    time = ProtoField.double("rpcrdma_pull.time", "Seconds since the Reply"),
}
pull.fields = f
local stray = ProtoExpert.new("rpcrdma_pull.stray", "RDMA_DONE for what nobody has provided", expert.group.SEQUENCE,
                              expert.severity.WARN)
pull.experts = { stray }

local mpa_private = Field.new("iwarp_mpa.privatedata")
local xids, types = Field.new("rpcordma.xid"), Field.new("rpcordma.msg_type")
local positions, lengths = Field.new("rpcordma.position"), Field.new("rpcordma.rdma_length")

-- The frames of Calls and of provided Replies by both ends and XID; and what is known of each message.
local calls, provided, records

function pull.init()
    calls, provided, records = {}, {}, {}
end

-- Shows the private data in some octets; the lower layer may have put its own in front (RFC 8797, section 5.2).
local function show_private(range, tree)
    local digits = range:bytes():tohex(true)
    local at
    repeat
        at = digits:find(FORMAT .. "01", at and at + 1 or 1, true)
        if not at then
            return false
        end
    until at % 2 == 1
    at = (at - 1) / 2
    if at + FORMAT_BYTES > range:len() then
        return false
    end
    local item = tree:add(private, range(at, FORMAT_BYTES))
    item:add(p.version, range(at + 4, 1))
    item:add(p.invalidates, range(at + 5, 1))
    item:add(p.sends, range(at + 6, 1), 1024 * (range(at + 6, 1):uint() + 1))
    item:add(p.receives, range(at + 7, 1), 1024 * (range(at + 7, 1):uint() + 1))
    at = at + FORMAT_BYTES
    if at + BLOCK_BYTES <= range:len() and range(at, 4):bytes():tohex(true) == BLOCK then
        item:set_len(FORMAT_BYTES + BLOCK_BYTES)
        local block = item:add(p.block, range(at, BLOCK_BYTES))
        block:add(p.block_version, range(at + 4, 1))
        block:add(p.may_pull, range(at + 5, 1))
        block:add(p.may_provide, range(at + 5, 1))
        if range(at + 4, 1):uint() ~= VERSION or range(at + 5, 1):uint() > FLAGS then
            block:add_proto_expert_info(unknown)
        end
    end
    return true
end

private:register_heuristic("infiniband.mad.cm.private", function(tvb, _, tree)
    return show_private(tvb(), tree)
end)

-- Both ends of the connection, in the same order for both directions, and who sends.
local function ends(pinfo)
    local source, target = tostring(pinfo.net_src), tostring(pinfo.net_dst)
    local low, high = pinfo.src_port, pinfo.dst_port
    if source .. " " .. low > target .. " " .. high then
        return target .. " " .. high .. " " .. source .. " " .. low, source .. " " .. low
    end
    return source .. " " .. low .. " " .. target .. " " .. high, source .. " " .. low
end

-- What there is to say of the only message of a frame with chunk lists, or of any RDMA_DONE; the former goes by the order of
-- messages: an XID is new in a Call, and its Call is there in a Reply.
local function note(pinfo, xid, kind, alone)
    local connection, sender = ends(pinfo)
    local key = connection .. " " .. xid
    local record = {}
    if kind == RDMA_DONE then
        record.done, record.reply = true, provided[key]
        if record.reply then
            record.reply.done_in, record.seconds = pinfo.number, pinfo.abs_ts - record.reply.at
            provided[key] = nil
        end
    elseif kind == RDMA_MSG or kind == RDMA_NOMSG then
        local call = calls[key]
        if not call or call.sender == sender then
            calls[key] = { sender = sender, frame = pinfo.number }
            return record
        end
        calls[key] = nil
        local places, octets = { positions() }, { lengths() }
        if kind == RDMA_NOMSG and alone and #places > 0 and places[1].value == 0 then
            record.octets, record.segments = 0, #places
            for index = 1, #places do
                record.octets = record.octets + octets[index].value
            end
            record.frame, record.call_in, record.at = pinfo.number, call.frame, pinfo.abs_ts
            provided[key] = record
        end
    end
    return record
end

local function show(record, pinfo, root)
    if record.octets then
        local item = root:add(pull, "RPC-over-RDMA, Reply provided in a Read chunk: " .. record.octets .. " octets")
        item:add(f.octets, record.octets):set_generated()
        item:add(f.segments, record.segments):set_generated()
        item:add(f.call_in, record.call_in):set_generated()
        if record.done_in then
            item:add(f.done_in, record.done_in):set_generated()
        end
        pinfo.cols.info:append(" [Reply of " .. record.octets .. " octets to be pulled]")
    elseif record.done then
        local item = root:add(pull, "RPC-over-RDMA, Reply was pulled")
        if not record.reply then
            item:add_proto_expert_info(stray)
            return
        end
        item:add(f.octets, record.reply.octets):set_generated()
        item:add(f.reply_in, record.reply.frame):set_generated()
        item:add(f.time, record.seconds):set_generated()
        pinfo.cols.info:append(" [Reply of frame " .. record.reply.frame .. " was pulled]")
    end
end

function pull.dissector(_, pinfo, tree)
    local data = mpa_private()
    if data then
        show_private(data.range, tree)
    end
    local kinds = { types() }
    for index, xid in ipairs({ xids() }) do
        local key = pinfo.number .. " " .. index
        records[key] = records[key] or note(pinfo, xid.value, kinds[index].value, #kinds == 1)
        show(records[key], pinfo, tree)
    end
end

register_postdissector(pull)
