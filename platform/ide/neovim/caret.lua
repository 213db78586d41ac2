--- Inline completions from caret-ls in Neovim 0.11, whose LSP client does not support them.
--- Neovim 0.12 supports them: vim.lsp.inline_completion (platform/docs/editors.md).

local M = {}

local METHOD = 'textDocument/inlineCompletion'
local GROWN = '$/caret/suggestionGrown'
local DISPLAYED = '$/caret/suggestionDisplayed'
local DISMISSED = '$/caret/suggestionDismissed'
local AUTOMATIC, INVOKED = 2, 1
local namespace = vim.api.nvim_create_namespace('caret')

--- The visible suggestion: { buffer, row, column, text, range, command }; nil: none.
local shown = nil
--- The request in flight: { client, id, place }; nil: none.
local asked = nil

local function clear()
  if shown and vim.api.nvim_buf_is_valid(shown.buffer) then
    vim.api.nvim_buf_clear_namespace(shown.buffer, namespace, 0, -1)
  end
  shown = nil
end

local function take_back()
  if asked then
    asked.client:cancel_request(asked.id)
    asked = nil
  end
end

local function client_of(buffer)
  return vim.lsp.get_clients({ bufnr = buffer, name = 'caret' })[1]
end

local function is_at(place)
  local row, column = unpack(vim.api.nvim_win_get_cursor(0))
  return vim.api.nvim_get_current_buf() == place.buffer and row - 1 == place.row and column == place.column
end

local function draw(suggestion)
  local lines = vim.split(suggestion.text, '\n', { plain = true })
  local below = {}
  for number = 2, #lines do
    below[#below + 1] = { { lines[number], 'CaretSuggestion' } }
  end
  vim.api.nvim_buf_set_extmark(suggestion.buffer, namespace, suggestion.row, suggestion.column, {
    virt_text = { { lines[1], 'CaretSuggestion' } },
    virt_text_pos = 'inline',
    virt_lines = #below > 0 and below or nil,
  })
end

local function show(place, result)
  clear()
  local item = result and result.items and result.items[1]
  if not item or not is_at(place) or vim.api.nvim_get_mode().mode:sub(1, 1) ~= 'i' then
    return
  end
  shown = vim.tbl_extend('force', place, { text = item.insertText, range = item.range, command = item.command })
  draw(shown)
  vim.cmd.redraw() -- so that the text is on the screen before the server is told
  place.client:notify(DISPLAYED, { uri = vim.uri_from_bufnr(place.buffer) })
end

--- Requests a suggestion. With `keeps`, the visible one stays until the response arrives.
local function ask(trigger, keeps)
  local buffer = vim.api.nvim_get_current_buf()
  local client = client_of(buffer)
  if not keeps then
    clear()
  end
  take_back()
  if not client then
    return
  end
  local row, column = unpack(vim.api.nvim_win_get_cursor(0))
  local place = { buffer = buffer, row = row - 1, column = column, client = client }
  local params = vim.lsp.util.make_position_params(0, client.offset_encoding)
  params.context = { triggerKind = trigger }
  local ok, id = client:request(METHOD, params, function(_, result)
    if asked and asked.place == place then
      asked = nil
      show(place, result)
    end
  end, buffer)
  if ok then
    asked = { client = client, id = id, place = place }
  end
end

--- The visible suggestion has more text: requests it again at the cursor.
local function on_grown(_, params)
  if shown and not asked and is_at(shown) and params.uri == vim.uri_from_bufnr(shown.buffer) then
    ask(AUTOMATIC, true)
  end
end

--- Inserts the suggestion. Returns false if there is none.
function M.accept()
  local suggestion = shown
  if not suggestion or not is_at(suggestion) then
    return false
  end
  clear()
  local edit = { range = suggestion.range, newText = suggestion.text }
  vim.lsp.util.apply_text_edits({ edit }, suggestion.buffer, suggestion.client.offset_encoding)
  local lines = vim.split(suggestion.text, '\n', { plain = true })
  local column = #lines == 1 and suggestion.column + #lines[1] or #lines[#lines]
  vim.api.nvim_win_set_cursor(0, { suggestion.row + #lines, column })
  suggestion.client:exec_cmd(suggestion.command, { bufnr = suggestion.buffer })
  return true
end

--- Hides the suggestion until the next key.
function M.dismiss()
  take_back()
  if shown and vim.api.nvim_buf_is_valid(shown.buffer) then
    shown.client:notify(DISMISSED, { uri = vim.uri_from_bufnr(shown.buffer) })
  end
  clear()
end

--- Requests a suggestion now, even where none would be requested automatically.
function M.suggest()
  ask(INVOKED)
end

--- Returns the text of the visible suggestion; nil if there is none.
function M.shown()
  return shown and shown.text
end

--- Signs in: opens the console, where the user confirms the code that the message shows.
function M.sign_in()
  local client = vim.lsp.get_clients({ name = 'caret' })[1]
  if not client then
    vim.notify('Caret is not running. Open a file first.', vim.log.levels.WARN)
    return
  end
  client:exec_cmd({ title = 'Sign in', command = 'caret.startSignIn' })
end

local COMMANDS = { sign_in = M.sign_in, suggest = M.suggest, dismiss = M.dismiss }

local function add_command()
  vim.api.nvim_create_user_command('Caret', function(given)
    local run = COMMANDS[given.args]
    if run then
      run()
    else
      vim.notify('Unknown command: Caret ' .. given.args, vim.log.levels.ERROR)
    end
  end, {
    nargs = 1,
    desc = 'Caret: sign_in, suggest, dismiss',
    complete = function()
      return vim.tbl_keys(COMMANDS)
    end,
  })
end

local function map_keys(options)
  local accept = options.accept or '<Tab>'
  vim.keymap.set('i', accept, function()
    if M.shown() then
      vim.schedule(M.accept) -- an expression mapping must not change the text
      return ''
    end
    return accept
  end, { expr = true, desc = 'Take the suggestion' })
  vim.keymap.set('i', options.dismiss or '<C-]>', M.dismiss, { desc = 'Dismiss the suggestion' })
end

--- options: cmd, settings (of caret-ls), filetypes, accept, dismiss (keys).
function M.setup(options)
  options = options or {}
  vim.api.nvim_set_hl(0, 'CaretSuggestion', { link = 'Comment', default = true })
  vim.lsp.config('caret', {
    cmd = options.cmd or { 'caret-ls' },
    filetypes = options.filetypes,
    init_options = options.settings,
    capabilities = { experimental = { caretGrowingSuggestions = true } },
    handlers = { [GROWN] = on_grown },
    root_markers = { '.git' },
  })
  vim.lsp.enable('caret')
  map_keys(options)
  add_command()
  local group = vim.api.nvim_create_augroup('caret', {})
  vim.api.nvim_create_autocmd({ 'TextChangedI', 'InsertEnter' }, {
    group = group,
    callback = function()
      ask(AUTOMATIC)
    end,
  })
  vim.api.nvim_create_autocmd({ 'InsertLeave', 'BufLeave' }, { group = group, callback = M.dismiss })
  vim.api.nvim_create_autocmd('CursorMovedI', {
    group = group,
    callback = function()
      if shown and not is_at(shown) then
        clear()
      end
    end,
  })
end

return M
