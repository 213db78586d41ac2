--- The suggestion at the cursor: requests it, draws it, and inserts it or a part of it.

local overlays = require('caret.overlay')
local sentence = require('caret.reasons')
local server = require('caret.server')

local M = {}

local METHOD = 'textDocument/inlineCompletion'
local DISPLAYED = '$/caret/suggestionDisplayed'
local DISMISSED = '$/caret/suggestionDismissed'
local AUTOMATIC, INVOKED = 2, 1 -- LSP's InlineCompletionTriggerKind
local NEXT_WORD = [[^\_s*\%(\k\+\|\%(\k\@!\S\)\+\)]]
local NEXT_LINE = [[^\n*[^\n]*]]
--- Its `shown` is { buffer, row, column, client, text, range, command, items, index }. `items` are the
--- suggestion and its alternatives.
local overlay = overlays.new('caret')

--- Called if there is no suggestion at the cursor. Another module sets it.
M.on_none = function() end

local function cursor()
  local row, column = unpack(vim.api.nvim_win_get_cursor(0))
  return row - 1, column
end

local function is_at(place)
  local row, column = cursor()
  return vim.api.nvim_get_current_buf() == place.buffer and row == place.row and column == place.column
end

local function draw()
  local shown = overlay.shown
  overlay:erase()
  local lines = vim.split(shown.text, '\n', { plain = true })
  local below = {}
  for number = 2, #lines do
    below[#below + 1] = { { lines[number], 'CaretSuggestion' } }
  end
  overlay:mark(shown.row, shown.column, {
    virt_text = { { lines[1], 'CaretSuggestion' } },
    virt_text_pos = 'inline',
    virt_lines = #below > 0 and below or nil,
  })
end

local function show(place, result, index)
  local items = result and result.items or {}
  index = items[index or 1] and index or 1
  local item = items[index]
  if not item or not is_at(place) or not overlays.is_inserting() then
    return overlay:clear()
  end
  overlay.shown = vim.tbl_extend('force', place, {
    text = item.insertText,
    range = item.range,
    command = item.command,
    items = items,
    index = index,
  })
  draw()
  vim.cmd.redraw() -- so that the text is on the screen before the server is told
  place.client:notify(DISPLAYED, { uri = vim.uri_from_bufnr(place.buffer) })
end

--- Requests a suggestion. With `keeps_shown`, the visible one stays until the response arrives.
--- `index` is the alternative to show; default: the first. `on_nothing` is called if there is none.
local function request_suggestion(trigger, keeps_shown, index, on_nothing)
  local buffer = vim.api.nvim_get_current_buf()
  local client = server.client(buffer)
  if not keeps_shown then
    overlay:clear()
  end
  overlay:cancel()
  if not client then
    return
  end
  local row, column = cursor()
  local place = { buffer = buffer, row = row, column = column, client = client }
  local params = vim.lsp.util.make_position_params(0, client.offset_encoding)
  params.context = { triggerKind = trigger }
  overlay:request(place, METHOD, params, function(result)
    show(place, result, index)
    if not (result and result.items and result.items[1]) then
      local callback = on_nothing or M.on_none
      callback(client)
    end
  end)
end

--- Inserts text at the cursor and moves the cursor behind it. Returns the new row and column.
local function insert(text, range, encoding)
  local row, column = cursor()
  local lines = vim.split(text, '\n', { plain = true })
  vim.lsp.util.apply_text_edits({ { range = range, newText = text } }, vim.api.nvim_get_current_buf(), encoding)
  local end_column = #lines == 1 and column + #lines[1] or #lines[#lines]
  vim.api.nvim_win_set_cursor(0, { row + #lines, end_column })
  return row + #lines - 1, end_column
end

--- Inserts the part of the suggestion that `pattern` matches; the rest stays visible.
local function accept_part(pattern)
  if not M.is_shown() then
    return false
  end
  local shown = overlay.shown
  local part = vim.fn.matchstr(shown.text, pattern)
  if part == '' or #part == #shown.text then
    return M.accept()
  end
  overlay:cancel()
  local start = shown.range.start
  local row, column = insert(part, { start = start, ['end'] = start }, shown.client.offset_encoding)
  local position = vim.lsp.util.make_position_params(0, shown.client.offset_encoding).position
  local width = shown.range['end'].character - start.character
  shown.text = shown.text:sub(#part + 1)
  shown.row, shown.column = row, column
  shown.range = {
    start = position,
    ['end'] = { line = position.line, character = position.character + width },
  }
  draw()
  return true
end

--- Returns whether a suggestion is visible at the cursor.
function M.is_shown()
  return overlay.shown ~= nil and is_at(overlay.shown)
end

--- Returns the text of the visible suggestion; nil if there is none.
function M.text()
  return overlay.shown and overlay.shown.text
end

--- Inserts the suggestion. Returns false if there is none.
function M.accept()
  if not M.is_shown() then
    return false
  end
  local accepted = overlay.shown
  overlay:clear()
  insert(accepted.text, accepted.range, accepted.client.offset_encoding)
  accepted.client:exec_cmd(accepted.command, { bufnr = accepted.buffer })
  return true
end

--- Inserts the next word of the suggestion. Returns false if there is none.
function M.accept_word()
  return accept_part(NEXT_WORD)
end

--- Inserts the suggestion up to the end of its next line. Returns false if there is none.
function M.accept_line()
  return accept_part(NEXT_LINE)
end

--- Hides the suggestion until the next key.
function M.dismiss()
  local shown = overlay.shown
  overlay:cancel()
  if shown and vim.api.nvim_buf_is_valid(shown.buffer) then
    shown.client:notify(DISMISSED, { uri = vim.uri_from_bufnr(shown.buffer) })
  end
  overlay:clear()
end

--- Requests a suggestion now, even where none would be requested automatically.
function M.suggest()
  request_suggestion(INVOKED)
end

--- Shows the alternative `step` further, and requests alternatives first if there are none yet.
local function show_other(step)
  local shown = overlay.shown
  if not M.is_shown() then
    return request_suggestion(INVOKED)
  end
  local num_items = #shown.items
  if num_items > 1 then
    show(shown, { items = shown.items }, (shown.index - 1 + step) % num_items + 1)
  else
    request_suggestion(INVOKED, true, 2)
  end
end

--- Shows the next alternative to the visible suggestion.
function M.next()
  show_other(1)
end

--- Shows the previous alternative to the visible suggestion.
function M.previous()
  show_other(-1)
end

--- Tells the user why a request has no result.
local function notify_reason(client)
  client:request('$/caret/explainNoSuggestion', vim.empty_dict(), function(_, result)
    local reason = result and result.reason
    if reason and reason ~= vim.NIL and reason ~= 'newer_keystroke' then
      vim.notify('Caret: ' .. sentence(reason), vim.log.levels.WARN)
    end
  end)
end

--- Requests a suggestion in a mode: block or docstring.
function M.suggest_mode(mode)
  local buffer = vim.api.nvim_get_current_buf()
  local client = server.client(buffer)
  if not client then
    return
  end
  local params = { command = 'caret.useMode', arguments = { vim.uri_from_bufnr(buffer), mode } }
  client:request('workspace/executeCommand', params, function()
    request_suggestion(INVOKED, false, nil, notify_reason)
  end, buffer)
end

--- Requests a suggestion because the text has changed, if the user is inserting.
function M.on_text_changed()
  if overlays.is_inserting() then
    request_suggestion(AUTOMATIC, M.is_shown()) -- after a part was inserted, the rest is still shown here
  end
end

function M.on_cursor_moved()
  if overlay.shown and not is_at(overlay.shown) then
    overlay:clear()
  end
end

--- The visible suggestion has more text: requests it again at the cursor.
function M.on_grown(_, params)
  local shown = overlay.shown
  if shown and not overlay.in_flight and is_at(shown) and params.uri == vim.uri_from_bufnr(shown.buffer) then
    request_suggestion(AUTOMATIC, true)
  end
end

return M
