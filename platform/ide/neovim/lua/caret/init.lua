--- Suggestions from a Caret gateway. See |caret|.

local chat = require('caret.chat')
local definition = require('caret.definition')
local docstring = require('caret.docstring')
local edit = require('caret.edit')
local proposal = require('caret.proposal')
local server = require('caret.server')
local status = require('caret.status')
local suggestion = require('caret.suggestion')

local M = {}

--- Keys in insert mode; false: no mapping.
local DEFAULTS = {
  accept = '<Tab>',
  accept_word = '<M-Right>',
  accept_line = '<M-C-Right>',
  suggest = '<M-Bslash>',
  dismiss = '<C-]>',
  next = '<M-]>',
  previous = '<M-[>',
  block = '<M-b>',
  docstring = '<M-d>',
}

local current = nil -- the options; nil: not set up

M.accept_word = suggestion.accept_word
M.accept_line = suggestion.accept_line
M.suggest = suggestion.suggest
M.next = suggestion.next
M.previous = suggestion.previous
M.apply = proposal.apply
M.discard = proposal.discard
M.stop = chat.stop
--- Writes a docstring for the function at the cursor.
M.docstring = docstring.write
--- Returns the text of the visible suggestion; nil if there is none.
M.shown = suggestion.text

--- Returns a text for the status line, such as 'Caret: ready'.
M.status = status.text

--- Signs in: opens the console, where the user confirms the code that the message shows.
function M.sign_in()
  server.execute('caret.startSignIn')
end

--- Inserts the suggestion; without one, goes to the next edit or applies it. Returns false if there
--- is neither.
function M.accept()
  return suggestion.accept() or edit.accept()
end

--- Hides the suggestion until the next key, and the next edit.
function M.dismiss()
  suggestion.dismiss()
  edit.dismiss()
end

--- Requests a whole block at the cursor.
function M.block()
  suggestion.suggest_mode('block')
end

--- Asks a question about the current file, or opens the chat. `range` is { first line, last line }.
function M.chat(text, range)
  if text and text ~= '' then
    chat.ask(text, { range = range })
  elseif range then
    chat.prompt(range)
  else
    chat.open()
  end
end

--- Explains the lines, or the code at the cursor.
function M.explain(_, range)
  chat.run('explain', range)
end

--- Generates tests for the lines, or for the code at the cursor.
function M.tests(_, range)
  chat.run('tests', range)
end

function M.pause()
  server.execute('caret.pause')
  M.dismiss()
end

function M.resume()
  server.execute('caret.resume')
end

local function is_shown()
  return suggestion.is_shown() or edit.is_shown()
end

--- Maps a key of insert mode to `run` while `is_active` returns true. Otherwise the key does what it did
--- before.
local function map_while(is_active, key, run, desc)
  local previous = vim.fn.maparg(key, 'i', false, true)
  vim.keymap.set('i', key, function()
    if is_active() then
      vim.schedule(run) -- an expression mapping must not change the text
      return ''
    end
    if previous.callback and previous.expr == 1 then
      return previous.callback() or ''
    elseif previous.callback then
      vim.schedule(previous.callback)
      return ''
    end
    return previous.rhs or key
  end, { expr = true, remap = previous.rhs ~= nil and previous.noremap == 0, desc = desc })
end

local function map_keys(options)
  local actions = {
    { is_shown, options.accept, M.accept, 'Caret: accept the suggestion or the next edit' },
    { suggestion.is_shown, options.accept_word, suggestion.accept_word, 'Caret: accept the next word' },
    { suggestion.is_shown, options.accept_line, suggestion.accept_line, 'Caret: accept the next line' },
  }
  for _, action in ipairs(actions) do
    if action[2] then
      map_while(unpack(action))
    end
  end
  local requests = {
    { options.dismiss, M.dismiss, 'Caret: dismiss the suggestion or the next edit' },
    { options.suggest, suggestion.suggest, 'Caret: request a suggestion' },
    { options.next, suggestion.next, 'Caret: show the next alternative' },
    { options.previous, suggestion.previous, 'Caret: show the previous alternative' },
    { options.block, M.block, 'Caret: request a block' },
    {
      options.docstring,
      function()
        suggestion.suggest_mode('docstring')
      end,
      'Caret: request a docstring',
    },
  }
  for _, mapping in ipairs(requests) do
    if mapping[1] then
      vim.keymap.set('i', mapping[1], mapping[2], { desc = mapping[3] })
    end
  end
end

local function add_autocommands()
  local group = vim.api.nvim_create_augroup('caret', {})
  local function on(events, callback)
    vim.api.nvim_create_autocmd(events, { group = group, callback = callback })
  end
  on({ 'TextChangedI', 'InsertEnter' }, function()
    edit.on_text_changed()
    suggestion.on_text_changed()
  end)
  on({ 'InsertLeave', 'BufLeave', 'WinLeave' }, M.dismiss)
  on('CursorMovedI', function()
    suggestion.on_cursor_moved()
    edit.on_cursor_moved()
  end)
end

--- Handles `$/caret/status`. The user may have begun to type before the server was ready.
local function on_status(_, params)
  local was_usable = status.is_usable()
  status.set(params)
  if status.is_usable() and not was_usable then
    suggestion.on_text_changed()
  end
end

--- Returns the options of setup(); nil if it was not called.
function M.options()
  return current
end

--- options: see |caret-options|.
function M.setup(options)
  if vim.fn.has('nvim-0.11') == 0 then
    return vim.notify('Caret needs Neovim 0.11 or newer.', vim.log.levels.ERROR)
  end
  options = vim.tbl_extend('force', DEFAULTS, options or {})
  current = options
  vim.api.nvim_set_hl(0, 'CaretSuggestion', { link = 'Comment', default = true })
  edit.setup(options.accept)
  suggestion.on_none = edit.request
  server.handlers['$/caret/status'] = on_status
  server.handlers['$/caret/suggestionGrown'] = suggestion.on_grown
  server.handlers['$/caret/chatContext'] = chat.on_context
  server.handlers['$/caret/chatText'] = chat.on_text
  server.handlers['$/caret/findDefinitions'] = definition.on_question
  map_keys(options)
  add_autocommands()
  server.enable(options)
end

return M
