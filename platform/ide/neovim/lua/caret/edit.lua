--- The next edit: a change of lines near the cursor or away from it. Requests it, draws it as a small
--- diff, goes to it, and applies it.

local diff = require('caret.line_diff')
local overlays = require('caret.overlay')
local server = require('caret.server')
local suggestion = require('caret.suggestion')

local M = {}

local METHOD = '$/caret/nextEdit'
local DISPLAYED = '$/caret/editDisplayed'
local ACCEPTED = '$/caret/editAccepted'
local DISMISSED = '$/caret/editDismissed'
local MAX_DIAGNOSTICS = 16
local SEVERITIES = { 'error', 'warning', 'information', 'hint' }
local REMOVED = { 'DiffDelete', 'CaretEditRemoved' }
--- Its `shown` is { id, buffer, tick, client, row, removed, added, text_edit }. The lines `added`
--- replace the lines `removed` at `row`.
local overlay = overlays.new('caret_edit')

--- True if the user has just accepted an edit.
local is_follow_up = false
--- The hint's words about the key that accepts; '': there is none.
local key = ''

--- Draws a change within one line: the removed part struck through, and the added part behind it.
local function draw_in_line()
  local shown = overlay.shown
  local part = diff.of_texts(shown.removed[1], shown.added[1])
  local stop = part.start + #part.removed
  if #part.removed > 0 then
    overlay:mark(shown.row, part.start, { end_col = stop, hl_group = REMOVED })
  end
  if #part.added > 0 then
    overlay:mark(shown.row, stop, { virt_text = { { part.added, 'CaretEditAdded' } }, virt_text_pos = 'inline' })
  end
end

--- Draws removed lines struck through, and added lines below them.
local function draw_lines()
  local shown = overlay.shown
  for index, line in ipairs(shown.removed) do
    overlay:mark(shown.row + index - 1, 0, { end_col = #line, hl_group = REMOVED })
  end
  if #shown.added == 0 then
    return
  end
  local lines = vim.tbl_map(function(line)
    return { { line == '' and ' ' or line, 'CaretEditAdded' } }
  end, shown.added)
  local above = shown.row + #shown.removed -- the row that the added lines are above
  if above > 0 then
    return overlay:mark(above - 1, 0, { virt_lines = lines })
  end
  overlay:mark(0, 0, { virt_lines = lines, virt_lines_above = true })
  if vim.fn.line('w0') == 1 then
    vim.fn.winrestview({ topfill = #lines }) -- Neovim does not scroll to lines above the first one
  end
end

--- Returns whether the cursor is at the edit.
local function is_at_edit()
  local shown = overlay.shown
  local row = vim.api.nvim_win_get_cursor(0)[1] - 1
  local first = #shown.removed == 0 and shown.row - 1 or shown.row
  return row >= first and row <= math.max(shown.row + #shown.removed - 1, shown.row)
end

local function draw_hint()
  local shown = overlay.shown
  local row = vim.api.nvim_win_get_cursor(0)[1] - 1
  local text = 'apply the edit'
  if not is_at_edit() then
    text = ('go to the edit in line %d %s'):format(shown.row + 1, row < shown.row and '↓' or '↑')
  end
  overlay:mark(row, 0, { virt_text = { { '  ' .. key .. text, 'CaretEditHint' } }, virt_text_pos = 'eol' })
end

local function draw()
  overlay:erase()
  if #overlay.shown.removed == 1 and #overlay.shown.added == 1 then
    draw_in_line()
  else
    draw_lines()
  end
  draw_hint()
end

--- Returns the lines of a text edit, without their ends.
local function lines_of(text)
  local lines = vim.split(text:gsub('\r', ''), '\n', { plain = true })
  if lines[#lines] == '' then
    lines[#lines] = nil
  end
  return lines
end

local function show(origin, result)
  local range = result.edit.range
  local last = range['end'].character == 0 and range['end'].line or range['end'].line + 1
  local old = vim.api.nvim_buf_get_lines(origin.buffer, range.start.line, last, false)
  local change = diff.of_lines(old, lines_of(result.edit.newText))
  overlay.shown = vim.tbl_extend('force', origin, {
    id = result.id,
    row = range.start.line + change.start,
    removed = change.removed,
    added = change.added,
    text_edit = result.edit,
  })
  draw()
  vim.cmd.redraw() -- so that the edit is on the screen before the server is told
  origin.client:notify(DISPLAYED, { id = overlay.shown.id })
end

--- Returns the diagnostics of the buffer that are nearest to the cursor.
local function find_diagnostics(buffer)
  local row = vim.api.nvim_win_get_cursor(0)[1] - 1
  local all = vim.diagnostic.get(buffer)
  table.sort(all, function(one, other)
    return math.abs(one.lnum - row) < math.abs(other.lnum - row)
  end)
  return vim.tbl_map(function(diagnostic)
    return { line = diagnostic.lnum, severity = SEVERITIES[diagnostic.severity] or 'hint', message = diagnostic.message }
  end, vim.list_slice(all, 1, MAX_DIAGNOSTICS))
end

local function is_current(origin)
  return vim.api.nvim_get_current_buf() == origin.buffer
    and vim.api.nvim_buf_get_changedtick(origin.buffer) == origin.tick
    and overlays.is_inserting()
end

--- Requests the next edit. The server waits for a pause, and cancels the request if text changes.
function M.request()
  overlay:cancel()
  local buffer = vim.api.nvim_get_current_buf()
  local client = server.client(buffer)
  if not client or not overlays.is_inserting() then
    return
  end
  local origin = { buffer = buffer, client = client, tick = vim.api.nvim_buf_get_changedtick(buffer) }
  local params = {
    uri = vim.uri_from_bufnr(buffer),
    position = vim.lsp.util.make_position_params(0, client.offset_encoding).position,
    diagnostics = find_diagnostics(buffer),
    isFollowUp = is_follow_up,
  }
  is_follow_up = false
  overlay:request(origin, METHOD, params, function(result)
    if result and result.edit and is_current(origin) and not suggestion.is_shown() then
      show(origin, result)
    end
  end)
end

--- Returns whether an edit is visible in the current buffer.
function M.is_shown()
  return overlay.shown ~= nil and is_current(overlay.shown)
end

--- Returns the visible edit; nil: none.
function M.shown()
  return overlay.shown
end

local function go_to_edit()
  local shown = overlay.shown
  local row = math.min(shown.row, vim.api.nvim_buf_line_count(shown.buffer) - 1)
  local line = vim.api.nvim_buf_get_lines(shown.buffer, row, row + 1, false)[1]
  local column = #line:match('^%s*')
  if #shown.removed == 1 and #shown.added == 1 then
    column = diff.of_texts(shown.removed[1], shown.added[1]).start
  end
  vim.fn.setpos("''", vim.fn.getpos('.')) -- so that CTRL-O returns
  vim.api.nvim_win_set_cursor(0, { row + 1, column })
  draw()
end

--- Applies the edit, and moves the cursor behind it.
local function apply()
  local edit = overlay.shown
  overlay:clear()
  edit.client:notify(ACCEPTED, { id = edit.id })
  vim.lsp.util.apply_text_edits({ edit.text_edit }, edit.buffer, edit.client.offset_encoding)
  local row = math.min(edit.row + math.max(#edit.added, 1), vim.api.nvim_buf_line_count(edit.buffer))
  local column = #(edit.added[#edit.added] or '')
  if #edit.removed == 1 and #edit.added == 1 then
    local part = diff.of_texts(edit.removed[1], edit.added[1])
    column = part.start + #part.added
  end
  vim.api.nvim_win_set_cursor(0, { row, column })
  is_follow_up = true -- the change of the text leads to the next request
end

--- Goes to the edit, or applies it if the cursor is there. Returns false if there is none.
function M.accept()
  if not M.is_shown() then
    return false
  end
  if is_at_edit() then
    apply()
  else
    go_to_edit()
  end
  return true
end

--- Hides the edit.
function M.dismiss()
  overlay:cancel()
  is_follow_up = false
  if overlay.shown then
    overlay.shown.client:notify(DISMISSED, { id = overlay.shown.id })
  end
  overlay:clear()
end

--- Hides an edit that no longer fits.
function M.on_text_changed()
  overlay:cancel()
  local shown = overlay.shown
  if shown and not is_current(shown) then
    shown.client:notify(DISMISSED, { id = shown.id })
    overlay:clear()
  end
end

function M.on_cursor_moved()
  if M.is_shown() then
    draw()
  end
end

--- `accept_key` is the key that accepts; false: none.
function M.setup(accept_key)
  key = accept_key and accept_key:gsub('^<(.*)>$', '%1') .. ': ' or ''
  vim.api.nvim_set_hl(0, 'CaretEditAdded', { link = 'DiffAdd', default = true })
  vim.api.nvim_set_hl(0, 'CaretEditRemoved', { strikethrough = true, default = true })
  vim.api.nvim_set_hl(0, 'CaretEditHint', { link = 'DiagnosticVirtualTextHint', default = true })
end

return M
