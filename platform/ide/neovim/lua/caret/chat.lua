--- The chat: a buffer beside the code. The language server answers, part by part.

local proposal = require('caret.proposal')
local sentence = require('caret.reasons')
local server = require('caret.server')

local M = {}

local NAME = 'caret://chat'
local LABELS = { explain = 'Explain this code', tests = 'Generate tests for this code' }
local NOTES = {
  length = 'The answer reached the maximum length and was cut off.',
  failed = 'The answer could not be completed.',
}
local HINT = 'i: ask  a: review the code at the cursor as a diff  Ctrl-C: stop  C: new chat  q: close'
local WIDTH = 80

local buffer = nil -- of the chat; nil: none yet
local turns = {} -- { role, text, command }, as the server gets them
local answers = {} -- { row, target }, in the order of the buffer
local request = nil -- { client, id }; nil: no answer is awaited
local number = 0 -- of the newest question; parts of older answers are dropped
local source = nil -- the buffer that the next question is about

local function window()
  return buffer and vim.fn.win_findbuf(buffer)[1]
end

--- Appends text, and scrolls the window if its cursor is at the end.
local function append(text)
  if not (buffer and vim.api.nvim_buf_is_valid(buffer)) then
    return
  end
  local win = window()
  local last = vim.api.nvim_buf_line_count(buffer)
  local follows = win and vim.api.nvim_win_get_cursor(win)[1] == last
  vim.bo[buffer].modifiable = true
  vim.api.nvim_buf_set_text(buffer, last - 1, -1, last - 1, -1, vim.split(text, '\n', { plain = true }))
  vim.bo[buffer].modifiable = false
  if follows then
    vim.api.nvim_win_set_cursor(win, { vim.api.nvim_buf_line_count(buffer), 0 })
  end
end

local function clear()
  M.stop()
  number = number + 1
  turns, answers = {}, {}
  vim.bo[buffer].modifiable = true
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, {})
  vim.bo[buffer].modifiable = false
end

local function make_buffer()
  buffer = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_name(buffer, NAME)
  vim.bo[buffer].filetype = 'markdown'
  vim.bo[buffer].modifiable = false
  local function map(key, run, desc)
    vim.keymap.set('n', key, run, { buffer = buffer, nowait = true, desc = 'Caret: ' .. desc })
  end
  map('i', M.prompt, 'ask')
  map('<CR>', M.prompt, 'ask')
  map('a', M.review, 'review the code at the cursor as a diff')
  map('<C-c>', M.stop, 'stop the answer')
  map('C', clear, 'new chat')
  map('q', '<Cmd>close<CR>', 'close')
end

--- Opens the chat beside the current window, and remembers the buffer that it is about.
function M.open()
  local current = vim.api.nvim_get_current_buf()
  if current ~= buffer then
    source = current
  end
  if not (buffer and vim.api.nvim_buf_is_valid(buffer)) then
    turns, answers = {}, {}
    make_buffer()
  end
  local win = window()
  if win then
    return vim.api.nvim_set_current_win(win)
  end
  vim.cmd('botright vsplit')
  win = vim.api.nvim_get_current_win()
  vim.api.nvim_win_set_buf(win, buffer)
  vim.api.nvim_win_set_width(win, math.min(WIDTH, math.floor(vim.o.columns / 2)))
  vim.wo[win].wrap = true
  vim.wo[win].linebreak = true
  vim.wo[win].number = false
  vim.wo[win].winbar = HINT
end

local function finish(note)
  request = nil
  append(note and ('\n\n> ' .. note .. '\n') or '\n')
end

local function on_result(token, err, result)
  if token ~= number then
    return
  end
  if err or not result then
    return finish(NOTES.failed)
  end
  if result.reason and result.reason ~= vim.NIL then
    return finish(sentence(result.reason))
  end
  finish(result.finishReason ~= 'stop' and (NOTES[result.finishReason] or NOTES.failed) or nil)
end

local function is_newest(params)
  return params.token == tostring(number)
end

--- Handles `$/caret/chatContext`: shows what goes with the question.
function M.on_context(_, params)
  if not is_newest(params) then
    return
  end
  local parts = vim.list_slice(params.files)
  if params.selection and params.selection ~= vim.NIL then
    parts[1] = ('%s, lines %d to %d'):format(parts[1], params.selection[1], params.selection[2])
  end
  if params.withheld and params.withheld ~= vim.NIL then
    parts[#parts + 1] = params.withheld .. ' (not sent)'
  end
  if #parts > 0 then
    append('*Sent with: ' .. table.concat(parts, '; ') .. '*\n\n')
  end
end

--- Handles `$/caret/chatText`.
function M.on_text(_, params)
  if is_newest(params) and request then
    turns[#turns].text = turns[#turns].text .. params.text
    append(params.text)
  end
end

--- Returns the turns to send: without questions that have no answer, except for the newest.
local function sent_turns()
  local sent = {}
  for index, turn in ipairs(turns) do
    local answer = turn.role == 'user' and turns[index + 1] or turn
    if index == #turns - 1 or (index < #turns - 1 and answer.text ~= '') then
      sent[#sent + 1] = { role = turn.role, text = turn.text, command = turn.command }
    end
  end
  return sent
end

--- Returns the lines of the range, from 0; without a range, the cursor's line as an empty range.
--- `stop` is exclusive.
local function lines_of(range)
  if range then
    return { first = range[1] - 1, stop = range[2], is_range = true }
  end
  local win = vim.fn.win_findbuf(source)[1]
  local row = win and vim.api.nvim_win_get_cursor(win)[1] - 1 or 0
  return { first = row, stop = row, is_range = false }
end

--- Asks about the buffer. `options` may have `command` ('explain' or 'tests') and `range`, the first and
--- the last line, from 1. Without a range, code of the answer is inserted below the cursor's line.
function M.ask(text, options)
  options = options or {}
  M.open()
  if request then
    return vim.notify('Caret: wait for the answer, or stop it with Ctrl-C.', vim.log.levels.WARN)
  end
  local client = server.client(source) or vim.lsp.get_clients({ name = 'caret' })[1]
  if not client then
    return server.notify_missing()
  end
  number = number + 1
  local token, lines = number, lines_of(options.range)
  turns[#turns + 1] = { role = 'user', text = text, command = options.command }
  turns[#turns + 1] = { role = 'assistant', text = '' }
  append('## You\n\n' .. text .. '\n\n## Caret\n\n')
  local first_row = vim.api.nvim_buf_line_count(buffer)
  local target_stop = lines.is_range and lines.stop or lines.first + 1
  local target_start = lines.is_range and lines.first or target_stop
  answers[#answers + 1] = { row = first_row, target = proposal.target(source, target_start, target_stop) }
  local _, id = client:request('$/caret/chat', {
    token = tostring(token),
    turns = sent_turns(),
    uri = vim.uri_from_bufnr(source),
    selection = {
      start = { line = lines.first, character = 0 },
      ['end'] = { line = lines.stop, character = 0 },
    },
    hasOpenFiles = true,
  }, function(err, result)
    on_result(token, err, result)
  end, source)
  request = { client = client, id = id }
end

--- Asks a command's question about the lines, or about the code at the cursor.
function M.run(command, range)
  M.ask(LABELS[command], { command = command, range = range })
end

--- Opens the chat, and asks the user for a question.
function M.prompt(range)
  M.open()
  vim.ui.input({ prompt = 'Ask Caret: ' }, function(text)
    if text and text:match('%S') then
      M.ask(text, { range = type(range) == 'table' and range or nil })
    end
  end)
end

--- Stops the answer. The text so far stays.
function M.stop()
  if request then
    request.client:cancel_request(request.id)
    number = number + 1 -- later parts do not belong to the conversation
    finish('Stopped.')
  end
end

--- Returns the lines of the fenced block at a row of the chat; nil: there is none.
local function block_at(row)
  local lines = vim.api.nvim_buf_get_lines(buffer, 0, -1, false)
  local first = nil
  for index, line in ipairs(lines) do
    if line:match('^%s*```') then
      if not first then
        first = index
      else
        if row >= first and row <= index then
          return vim.list_slice(lines, first + 1, index - 1)
        end
        first = nil
      end
    end
  end
end

--- Shows the code at the cursor as a change of the code that its question was about.
function M.review()
  local row = vim.api.nvim_win_get_cursor(0)[1]
  local code, target = block_at(row), nil
  for _, answer in ipairs(answers) do
    target = answer.row <= row and answer.target or target
  end
  if not (code and target) then
    return vim.notify('Caret: move the cursor into a code block of an answer.', vim.log.levels.WARN)
  end
  proposal.show(target, code)
end

--- Returns the text of the chat, for tests.
function M.text()
  return buffer and table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, false), '\n') or ''
end

--- Returns whether an answer is awaited.
function M.is_busy()
  return request ~= nil
end

return M
