--- What differs between old and new lines.

local M = {}

local function is_inside_character(text, index)
  local byte = text:byte(index)
  return byte ~= nil and byte >= 0x80 and byte < 0xC0
end

--- Returns how many bytes are the same at the start of two texts: whole characters.
local function count_common(one, other)
  local count = 0
  while count < #one and one:byte(count + 1) == other:byte(count + 1) do
    count = count + 1
  end
  while is_inside_character(one, count + 1) or is_inside_character(other, count + 1) do
    count = count - 1
  end
  return count
end

--- Returns how many bytes are the same at the end, behind the first `start` bytes.
local function count_common_at_end(one, other, start)
  local count, most = 0, math.min(#one, #other) - start
  while count < most and one:byte(#one - count) == other:byte(#other - count) do
    count = count + 1
  end
  while count > 0 and is_inside_character(one, #one - count + 1) do
    count = count - 1
  end
  return count
end

--- Returns { start, removed, added }: behind `start` bytes, `added` replaces `removed`.
function M.of_texts(old, new)
  local start = count_common(old, new)
  local num_same = count_common_at_end(old, new, start)
  return { start = start, removed = old:sub(start + 1, #old - num_same), added = new:sub(start + 1, #new - num_same) }
end

--- Returns { start, removed, added }: behind `start` lines, the lines `added` replace `removed`.
function M.of_lines(old, new)
  local start, stop = 0, 0
  while start < #old and old[start + 1] == new[start + 1] do
    start = start + 1
  end
  while stop < math.min(#old, #new) - start and old[#old - stop] == new[#new - stop] do
    stop = stop + 1
  end
  return {
    start = start,
    removed = vim.list_slice(old, start + 1, #old - stop),
    added = vim.list_slice(new, start + 1, #new - stop),
  }
end

return M
