--- Changes that a chat proposes: shows them as a diff, and applies them if the code is still there.

local M = {}

local CHANGED = 'Caret: the code has changed since the question. Select it and ask again.'
local namespace = vim.api.nvim_create_namespace('caret_proposal')

--- The proposal that is shown: { target, lines, tab }; nil: none.
local shown = nil

--- Returns the lines of a buffer as the target of a change. Without lines (first == last), text is
--- inserted before `first`. Both count from 0; `last` is exclusive.
function M.target(buffer, first, last)
  last = math.min(last, vim.api.nvim_buf_line_count(buffer))
  return {
    buffer = buffer,
    lines = vim.api.nvim_buf_get_lines(buffer, first, last, false),
    mark = vim.api.nvim_buf_set_extmark(buffer, namespace, math.min(first, last), 0, {}),
  }
end

local function is_at(lines, row, wanted)
  for index, line in ipairs(wanted) do
    if lines[row + index] ~= line then
      return false
    end
  end
  return true
end

--- Returns the row where the target's lines are now; nil: they have changed, or are there twice.
local function locate(target)
  local lines = vim.api.nvim_buf_get_lines(target.buffer, 0, -1, false)
  local row = vim.api.nvim_buf_get_extmark_by_id(target.buffer, namespace, target.mark, {})[1]
  if row and is_at(lines, row, target.lines) then
    return row
  end
  local found = nil
  for candidate = 0, #lines - #target.lines do
    if is_at(lines, candidate, target.lines) then
      if found then
        return nil
      end
      found = candidate
    end
  end
  return found
end

local function indent_of(lines)
  for _, line in ipairs(lines) do
    if line:match('%S') then
      return line:match('^%s*')
    end
  end
  return ''
end

--- Returns the code with the indentation of the lines that it replaces.
local function fit(code, replaced)
  local wanted, present = indent_of(replaced), indent_of(code)
  local missing = vim.startswith(wanted, present) and wanted:sub(#present + 1) or ''
  return vim.tbl_map(function(line)
    return line:match('%S') and missing .. line or ''
  end, code)
end

local function show_diff(buffer, lines)
  vim.cmd('tab split')
  vim.api.nvim_win_set_buf(0, buffer)
  vim.cmd('diffthis')
  vim.cmd('rightbelow vnew')
  local scratch = vim.api.nvim_get_current_buf()
  vim.bo[scratch].buftype = 'nofile'
  vim.bo[scratch].bufhidden = 'wipe'
  vim.bo[scratch].filetype = vim.bo[buffer].filetype
  vim.api.nvim_buf_set_lines(scratch, 0, -1, false, lines)
  vim.bo[scratch].modifiable = false
  vim.cmd('diffthis')
  vim.wo.winbar = 'Proposed change: a applies it, q discards it'
  vim.keymap.set('n', 'a', M.apply, { buffer = scratch, nowait = true, desc = 'Caret: apply the change' })
  vim.keymap.set('n', 'q', M.discard, { buffer = scratch, nowait = true, desc = 'Caret: discard the change' })
end

--- Shows the file beside a copy of it that has the change.
function M.show(target, code)
  local row = vim.api.nvim_buf_is_loaded(target.buffer) and locate(target)
  if not row then
    return vim.notify(CHANGED, vim.log.levels.WARN)
  end
  M.discard()
  local proposed = vim.api.nvim_buf_get_lines(target.buffer, 0, -1, false)
  local lines = fit(code, target.lines)
  local after = vim.list_slice(proposed, row + #target.lines + 1)
  proposed = vim.list_extend(vim.list_extend(vim.list_slice(proposed, 1, row), lines), after)
  show_diff(target.buffer, proposed)
  shown = { target = target, lines = lines, tab = vim.api.nvim_get_current_tabpage() }
end

--- Changes the file as proposed, although it may have changed elsewhere since.
function M.apply()
  if not shown then
    return vim.notify('Caret: no change is proposed.', vim.log.levels.WARN)
  end
  local target, lines = shown.target, shown.lines
  local row = vim.api.nvim_buf_is_loaded(target.buffer) and locate(target)
  if not row then
    return vim.notify(CHANGED, vim.log.levels.WARN)
  end
  vim.api.nvim_buf_set_lines(target.buffer, row, row + #target.lines, false, lines)
  M.discard()
end

--- Closes the diff.
function M.discard()
  local tab = shown and shown.tab
  shown = nil
  if tab and vim.api.nvim_tabpage_is_valid(tab) then
    local windows = vim.api.nvim_tabpage_list_wins(tab)
    vim.api.nvim_win_call(windows[1], function()
      vim.cmd('diffoff!')
    end)
    vim.cmd(vim.api.nvim_tabpage_get_number(tab) .. 'tabclose')
  end
end

return M
