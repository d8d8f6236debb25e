-- SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
--
-- The header of RPC-over-RDMA version 2 (draft-ietf-nfsv4-rpcrdma-version-two-07, "the draft"): its fields, and how each type
-- of it is read. rpcrdma.lua loads this file.

local rpcrdma = _G.rpcrdma or {}
_G.rpcrdma = rpcrdma
if rpcrdma.header then
    return
end

local v2 = Proto("rpcrdma2", "RPC-over-RDMA Version 2")

local ERROR, GRANT, CONNPROP_MIDDLE, CONNPROP_FINAL = 4, 5, 6, 7
local CALL_EXTERNAL, CALL_MIDDLE, CALL_INLINE, REPLY_EXTERNAL, REPLY_MIDDLE, REPLY_INLINE = 8, 9, 10, 11, 12, 13

-- The draft, section 8.4.
local TYPES = {
    [ERROR] = "RDMA2_ERROR", [GRANT] = "RDMA2_GRANT",
    [CONNPROP_MIDDLE] = "RDMA2_CONNPROP_MIDDLE", [CONNPROP_FINAL] = "RDMA2_CONNPROP_FINAL",
    [CALL_EXTERNAL] = "RDMA2_CALL_EXTERNAL", [CALL_MIDDLE] = "RDMA2_CALL_MIDDLE", [CALL_INLINE] = "RDMA2_CALL_INLINE",
    [REPLY_EXTERNAL] = "RDMA2_REPLY_EXTERNAL", [REPLY_MIDDLE] = "RDMA2_REPLY_MIDDLE", [REPLY_INLINE] = "RDMA2_REPLY_INLINE",
}
local ERRORS = {
    [1] = "RDMA2_ERR_VERS", [2] = "RDMA2_ERR_BAD_XDR", [3] = "RDMA2_ERR_BAD_PROPVAL", [4] = "RDMA2_ERR_INVAL_HTYPE",
    [5] = "RDMA2_ERR_INVAL_CONT", [6] = "RDMA2_ERR_READ_CHUNKS", [7] = "RDMA2_ERR_WRITE_CHUNKS", [8] = "RDMA2_ERR_SEGMENTS",
    [9] = "RDMA2_ERR_WRITE_RESOURCE", [10] = "RDMA2_ERR_REPLY_RESOURCE", [11] = "RDMA2_ERR_VERS_MISMATCH",
    [100] = "RDMA2_ERR_SYSTEM",
}
-- Section 8.3.
local PROPERTIES = {
    [1] = "Maximum Send Size", [2] = "Receive Buffer Size", [3] = "Maximum Segment Size", [4] = "Maximum Segment Count",
    [5] = "Reverse-Direction Support", [6] = "Host Authentication Message",
}
local REVERSE_SUPPORT, HOST_AUTHENTICATION = 5, 6
local REVERSE = {
    [0] = "RDMA2_RVRSDIR_NONE", [1] = "RDMA2_RVRSDIR_SIMPLE", [2] = "RDMA2_RVRSDIR_CONT", [3] = "RDMA2_RVRSDIR_GENL",
}

local f = {
    xid = ProtoField.uint32("rpcrdma2.xid", "XID", base.HEX),
    version = ProtoField.uint32("rpcrdma2.version", "Version"),
    credit = ProtoField.uint32("rpcrdma2.credit", "Credit"),
    advance = ProtoField.int32("rpcrdma2.credit.advance", "More than in the message before"),
    left = ProtoField.int32("rpcrdma2.credit.left", "Messages that the peer may still send"),
    type = ProtoField.uint32("rpcrdma2.type", "Header type", base.DEC, TYPES),
    sequence = ProtoField.uint32("rpcrdma2.sequence", "Number of the message in this direction"),
    error = ProtoField.uint32("rpcrdma2.error", "Error", base.DEC, ERRORS),
    vers_low = ProtoField.uint32("rpcrdma2.vers_low", "Lowest version"),
    vers_high = ProtoField.uint32("rpcrdma2.vers_high", "Highest version"),
    max_chunks = ProtoField.uint32("rpcrdma2.max_chunks", "Most chunks"),
    max_segments = ProtoField.uint32("rpcrdma2.max_segments", "Most segments"),
    chunk_index = ProtoField.uint32("rpcrdma2.chunk_index", "Index of the Write chunk"),
    length_needed = ProtoField.uint32("rpcrdma2.length_needed", "Octets needed"),
    prop = ProtoField.none("rpcrdma2.prop", "Property"),
    prop_id = ProtoField.uint32("rpcrdma2.prop.id", "Identifier", base.DEC, PROPERTIES),
    prop_length = ProtoField.uint32("rpcrdma2.prop.length", "Octets"),
    prop_value = ProtoField.uint32("rpcrdma2.prop.value", "Value"),
    prop_reverse = ProtoField.uint32("rpcrdma2.prop.reverse", "Value", base.DEC, REVERSE),
    prop_data = ProtoField.bytes("rpcrdma2.prop.data", "Value"),
    inv_handle = ProtoField.uint32("rpcrdma2.inv_handle", "Handle that may be invalidated", base.HEX),
    call = ProtoField.none("rpcrdma2.call", "Call chunk"),
    reads = ProtoField.none("rpcrdma2.reads", "Read list"),
    writes = ProtoField.none("rpcrdma2.writes", "Write list"),
    reply = ProtoField.none("rpcrdma2.reply", "Reply chunk"),
    call_count = ProtoField.uint32("rpcrdma2.call.count", "Segments"),
    reads_count = ProtoField.uint32("rpcrdma2.reads.count", "Segments"),
    writes_count = ProtoField.uint32("rpcrdma2.writes.count", "Chunks"),
    reply_count = ProtoField.uint32("rpcrdma2.reply.count", "Segments"),
    chunk = ProtoField.none("rpcrdma2.chunk", "Write chunk"),
    segment = ProtoField.none("rpcrdma2.segment", "Segment"),
    position = ProtoField.uint32("rpcrdma2.position", "Position"),
    handle = ProtoField.uint32("rpcrdma2.handle", "Handle", base.HEX),
    length = ProtoField.uint32("rpcrdma2.length", "Length"),
    offset = ProtoField.uint64("rpcrdma2.offset", "Offset", base.HEX),
    remaining = ProtoField.uint32("rpcrdma2.remaining", "Remaining"),
    payload = ProtoField.uint32("rpcrdma2.payload", "Octets of the RPC message here"),
    fragment = ProtoField.framenum("rpcrdma2.fragment", "Continues"),
    reassembled_in = ProtoField.framenum("rpcrdma2.reassembled_in", "RPC message is whole in"),
    part_of = ProtoField.framenum("rpcrdma2.part_of", "Send is whole in"),
    rpc_length = ProtoField.uint32("rpcrdma2.rpc.length", "Octets of the RPC message"),
    reduced = ProtoField.bytes("rpcrdma2.rpc.reduced", "RPC message without what is in chunks"),
    trailing = ProtoField.bytes("rpcrdma2.trailing", "Octets behind the header"),
}
v2.fields = f

local e = {
    malformed = ProtoExpert.new("rpcrdma2.malformed", "Malformed header", expert.group.MALFORMED, expert.severity.ERROR),
    type = ProtoExpert.new("rpcrdma2.type.unknown", "Unknown header type", expert.group.PROTOCOL, expert.severity.ERROR),
    continuation = ProtoExpert.new("rpcrdma2.continuation", "Wrong continuation", expert.group.SEQUENCE, expert.severity.ERROR),
    credit = ProtoExpert.new("rpcrdma2.credit.exceeded", "Sent without a credit", expert.group.SEQUENCE, expert.severity.WARN),
    xid = ProtoExpert.new("rpcrdma2.xid.differs", "The RPC message is another one", expert.group.PROTOCOL,
                          expert.severity.WARN),
    reduced = ProtoExpert.new("rpcrdma2.reduced", "Chunks have the rest of the RPC message", expert.group.REASSEMBLE,
                              expert.severity.CHAT),
    trailing = ProtoExpert.new("rpcrdma2.trailing.present", "Octets behind the header", expert.group.PROTOCOL,
                               expert.severity.WARN),
}
v2.experts = e

-- Reads a header. What lies behind its end, or cannot be, raises an error with the reason.

local Reader = {}
Reader.__index = Reader

local function malformed(reason)
    error({ reason = reason }, 0)
end

function Reader:take(count)
    if self.at + count > self.tvb:len() then
        malformed("Ends within the header")
    end
    self.at = self.at + count
    return self.tvb(self.at - count, count)
end

function Reader:word(tree, field)
    local range = self:take(4)
    return range:uint(), tree:add(field, range)
end

-- Whether there is one more of something (RFC 4506, section 4.19).
function Reader:more()
    local value = self:take(4):uint()
    if value > 1 then
        malformed("Neither the end of a list nor an entry")
    end
    return value == 1
end

-- A part of the tree: its item covers what `body` reads, and has the text that it returns.
function Reader:part(tree, field, body)
    local start = self.at
    local item = tree:add(field, self:take(4))
    self.at = start
    local text = body(item)
    item:set_len(self.at - start)
    if text then
        item:set_text(text)
    end
end

function Reader:segment(tree, positioned)
    local segment = {}
    self:part(tree, f.segment, function(item)
        segment.position = positioned and self:word(item, f.position)
        segment.handle = self:word(item, f.handle)
        segment.length = self:word(item, f.length)
        local range = self:take(8)
        item:add(f.offset, range)
        segment.offset = rpcrdma.moved.integer(range:uint64())
        local where = positioned and "Position " .. segment.position .. ": " or ""
        return string.format("%s%u octets of handle 0x%08x at 0x%016x", where, segment.length, segment.handle, segment.offset)
    end)
    return segment
end

local function octets(segments)
    local sum = 0
    for _, segment in ipairs(segments) do
        sum = sum + segment.length
    end
    return sum
end

function Reader:read_list(tree, field, count_field, name)
    local segments = {}
    self:part(tree, field, function(item)
        while self:more() do
            segments[#segments + 1] = self:segment(item, true)
        end
        item:add(count_field, #segments):set_generated()
        return string.format("%s: %u segments, %u octets", name, #segments, octets(segments))
    end)
    return segments
end

function Reader:segments(tree)
    local segments = {}
    for _ = 1, self:take(4):uint() do
        segments[#segments + 1] = self:segment(tree)
    end
    return segments
end

function Reader:write_list(tree)
    local sum = 0
    self:part(tree, f.writes, function(list)
        while self:more() do
            self:part(list, f.chunk, function(item)
                local segments = self:segments(item)
                self.writes[#self.writes + 1] = segments
                sum = sum + octets(segments)
                return string.format("Write chunk: %u segments, %u octets", #segments, octets(segments))
            end)
        end
        list:add(f.writes_count, #self.writes):set_generated()
        return string.format("Write list: %u chunks, %u octets", #self.writes, sum)
    end)
    return sum
end

function Reader:reply_chunk(tree)
    self:part(tree, f.reply, function(item)
        local present = self:more()
        if present then
            self.reply = self:segments(item)
        end
        item:add(f.reply_count, #self.reply):set_generated()
        return present and string.format("Reply chunk: %u segments, %u octets", #self.reply, octets(self.reply)) or
               "Reply chunk: none"
    end)
end

function Reader:property(tree)
    self:part(tree, f.prop, function(item)
        local id = self:word(item, f.prop_id)
        local length = self:word(item, f.prop_length)
        local name = PROPERTIES[id] or "Property " .. id
        if PROPERTIES[id] and id ~= HOST_AUTHENTICATION then
            if length ~= 4 then
                malformed(name .. " of " .. length .. " octets")
            end
            local value = self:word(item, id == REVERSE_SUPPORT and f.prop_reverse or f.prop_value)
            return name .. ": " .. (id == REVERSE_SUPPORT and REVERSE[value] or value)
        end
        if length > 0 then
            item:add(f.prop_data, self:take(length + -length % 4)(0, length))
        end
        return name .. ": " .. length .. " octets"
    end)
end

-- What follows the prefix in each type. Returns what the list of frames says of it.

local BODIES = {}

BODIES[ERROR] = function(reader, tree)
    local code = reader:word(tree, f.error)
    local arms = {
        [1] = { f.vers_low, f.vers_high }, [6] = { f.max_chunks }, [7] = { f.max_chunks }, [8] = { f.max_segments },
        [9] = { f.chunk_index, f.length_needed }, [10] = { f.length_needed },
    }
    for _, field in ipairs(arms[code] or {}) do
        reader:word(tree, field)
    end
    return ERRORS[code] or "error " .. code
end

BODIES[GRANT] = function() end

BODIES[CONNPROP_FINAL] = function(reader, tree)
    for _ = 1, reader:take(4):uint() do
        reader:property(tree)
    end
end
BODIES[CONNPROP_MIDDLE] = BODIES[CONNPROP_FINAL]

BODIES[CALL_EXTERNAL] = function(reader, tree)
    reader:word(tree, f.inv_handle)
    reader.call = reader:read_list(tree, f.call, f.call_count, "Call chunk")
    reader.reads = reader:read_list(tree, f.reads, f.reads_count, "Read list")
    reader:write_list(tree)
    reader:reply_chunk(tree)
    if octets(reader.call) == 0 then
        malformed("Neither an RPC message nor a chunk with it")
    end
end

BODIES[CALL_INLINE] = function(reader, tree)
    reader:word(tree, f.inv_handle)
    reader.reads = reader:read_list(tree, f.reads, f.reads_count, "Read list")
    reader.reduced = octets(reader.reads) > 0
    reader:write_list(tree)
    reader:reply_chunk(tree)
end

BODIES[REPLY_EXTERNAL] = function(reader, tree)
    reader:write_list(tree)
    reader:reply_chunk(tree)
    if octets(reader.reply) == 0 then
        malformed("Neither an RPC message nor a chunk with it")
    end
end

BODIES[REPLY_INLINE] = function(reader, tree)
    reader.reduced = reader:write_list(tree) > 0
end

BODIES[CALL_MIDDLE] = function(reader, tree)
    reader.remaining = reader:word(tree, f.remaining)
    return reader.remaining .. " octets remaining"
end
BODIES[REPLY_MIDDLE] = BODIES[CALL_MIDDLE]

-- A reader of a message, which knows the segments of its chunks when it has read them.
local function reader(tvb)
    return setmetatable({ tvb = tvb, at = 0, call = {}, reads = {}, writes = {}, reply = {} }, Reader)
end

rpcrdma.header = { proto = v2, fields = f, experts = e, types = TYPES, bodies = BODIES, reader = reader, malformed = malformed }
