-- SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
--
-- What RDMA Reads and Writes have moved of the memory that chunks of version 2 name, and RPC messages put together with it.
-- rpcrdma.lua loads this file.

local rpcrdma = _G.rpcrdma or {}
_G.rpcrdma = rpcrdma
if rpcrdma.moved then
    return
end

local opcode, number = Field.new("infiniband.bth.opcode"), Field.new("infiniband.bth.psn")
local padding = Field.new("infiniband.bth.padcnt")
local address, key = Field.new("infiniband.reth.va"), Field.new("infiniband.reth.r_key")
local rdmap, last_flag = Field.new("iwarp_rdma.opcode"), Field.new("iwarp_ddp.last_flag")
local tag, place = Field.new("iwarp_ddp.stag"), Field.new("iwarp_ddp.tagged_offset")
local sink, sink_place = Field.new("iwarp_rdma.sinkstag"), Field.new("iwarp_rdma.sinkto")
local length = Field.new("iwarp_rdma.rdmardsz")
local source, source_place = Field.new("iwarp_rdma.srcstag"), Field.new("iwarp_rdma.srcto")

-- Of InfiniBand: RDMA Writes, the request of an RDMA Read, and responses to it. What begins names an address, or the request
-- that it answers.
local MOVES = {
    [6] = { writes = true, begins = true }, [7] = {}, [8] = {}, [9] = {}, [10] = { writes = true, begins = true },
    [11] = { writes = true, begins = true }, [12] = { asks = true }, [13] = { begins = true }, [14] = {},
    [15] = { ends = true }, [16] = { begins = true, ends = true },
}
-- Of iWARP.
local WRITE, READ_REQUEST, READ_RESPONSE = 0, 1, 2
local NUMBERS = 0x1000000

-- By connection and handle: pieces by their address. By direction: where the next packet belongs, and what was asked for. And
-- what was looked at.
local memory, cursors, asked, seen

local moved = {}
rpcrdma.moved = moved

function moved.init()
    memory, cursors, asked, seen = {}, {}, {}, {}
end

-- Addresses are whole numbers of 64 bits, and go round as those do.
function moved.integer(value)
    return math.tointeger(value:higher()) << 32 | math.tointeger(value:lower())
end

local function newest(field)
    local all = { field() }
    return all[#all] and all[#all].value
end

-- From now on keep what is moved there; what was there before was another's.
function moved.expect(connection, segments)
    for _, segment in ipairs(segments) do
        memory[connection .. segment.handle] = {}
    end
end

function moved.forget(connection, segments)
    for _, segment in ipairs(segments) do
        memory[connection .. segment.handle] = nil
    end
end

local function keep(connection, handle, at, data)
    local pieces = memory[connection .. handle]
    if pieces and #data > 0 then
        pieces[at] = data
    end
end

-- Keeps what a packet of InfiniBand moves. Returns whether it ends an RDMA Read, or nothing for packets that move nothing.
function moved.infiniband(tvb, pinfo, connection, to, back)
    local move, psn = MOVES[newest(opcode) or -1], newest(number)
    if not move or seen[pinfo.number] then
        return move and move.ends
    end
    seen[pinfo.number] = true
    if move.asks then
        asked[to .. psn] = { handle = newest(key), at = moved.integer(newest(address)) }
        return false
    end
    if move.begins then
        local request = asked[back .. psn]
        cursors[to] = move.writes and { handle = newest(key), at = moved.integer(newest(address)), psn = psn } or
                      request and { handle = request.handle, at = request.at, psn = psn }
    end
    local cursor, octets = cursors[to], tvb:len() - newest(padding)
    -- Not what was sent again.
    if cursor and octets > 0 and cursor.psn == psn then
        keep(connection, cursor.handle, cursor.at, tvb:raw(0, octets))
        cursor.at, cursor.psn = cursor.at + octets, (psn + 1) % NUMBERS
    end
    return move.ends
end

-- The same of iWARP. Each segment tells its address; that of a response is the requester's own.
function moved.iwarp(tvb, pinfo, connection, to, back)
    local kind = newest(rdmap)
    if not kind or kind > READ_RESPONSE then
        return nil
    end
    local once = pinfo.number .. " " .. tostring(newest(kind == READ_REQUEST and sink_place or place))
    if seen[once] then
        return kind == READ_RESPONSE and newest(last_flag)
    end
    seen[once] = true
    if kind == READ_REQUEST then
        local requests = asked[to] or {}
        asked[to] = requests
        requests[#requests + 1] = { sink = newest(sink), from = moved.integer(newest(sink_place)), octets = newest(length),
                                    handle = newest(source), at = moved.integer(newest(source_place)) }
        return false
    end
    local at = moved.integer(newest(place))
    if kind == WRITE then
        keep(connection, newest(tag), at, tvb:raw())
        return false
    end
    local requests = asked[back] or {}
    for index = #requests, 1, -1 do
        local request = requests[index]
        if request.sink == newest(tag) and at - request.from >= 0 and at - request.from < request.octets then
            keep(connection, request.handle, request.at + at - request.from, tvb:raw())
            break
        end
    end
    return newest(last_flag)
end

-- The octets of some segments, one behind the other, or nothing if some were not captured.
function moved.gather(connection, segments)
    local parts = {}
    for _, segment in ipairs(segments) do
        local pieces, octets = memory[connection .. segment.handle] or {}, 0
        while octets < segment.length do
            local piece = pieces[segment.offset + octets]
            if not piece then
                return nil
            end
            parts[#parts + 1] = piece:sub(1, segment.length - octets)
            octets = octets + #piece
        end
    end
    return table.concat(parts)
end

local function padded(data)
    return data .. ("\0"):rep(-#data % 4)
end

-- A stream with what Read chunks have taken out of it, which tell their Positions in what comes out.
function moved.with_reads(stream, connection, segments)
    local chunks, order = {}, {}
    for _, segment in ipairs(segments) do
        if not chunks[segment.position] then
            chunks[segment.position] = {}
            order[#order + 1] = segment.position
        end
        table.insert(chunks[segment.position], segment)
    end
    table.sort(order)
    local whole, at = "", 0
    for _, position in ipairs(order) do
        local data = moved.gather(connection, chunks[position])
        if not data or position - #whole < 0 or position - #whole > #stream - at then
            return nil
        end
        local taken = position - #whole
        whole, at = whole .. stream:sub(at + 1, at + taken) .. padded(data), at + taken
    end
    return whole .. stream:sub(at + 1)
end

-- Where the data of a Write chunk belong. Only who knows NFS knows; they are behind their length, be that at the end or where
-- it is first found.
local function behind_length(stream, start, octets)
    local wanted = string.pack(">I4", octets)
    if stream:sub(-4) == wanted then
        return #stream
    end
    for at = start, #stream - 4, 4 do
        if stream:sub(at + 1, at + 4) == wanted then
            return at + 4
        end
    end
end

-- A stream with what Write chunks have taken out of it.
function moved.with_writes(stream, connection, chunks)
    local whole, at = "", 0
    for _, segments in ipairs(chunks) do
        local data = moved.gather(connection, segments)
        local there = data and (#data == 0 and at or behind_length(stream, at, #data))
        if not there then
            return nil
        end
        whole, at = whole .. stream:sub(at + 1, there) .. padded(data), there
    end
    return whole .. stream:sub(at + 1)
end
