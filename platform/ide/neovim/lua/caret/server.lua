--- The language server: starts it, and finds the client of a buffer.

local command = require('caret.command')
local status = require('caret.status')

local M = {}

local SIGTERM = 15 -- stopped by the user

--- Notifications of the server: the handler of each method. Other modules add theirs.
M.handlers = {}

--- Returns the server's client if it is attached to the buffer; nil: not yet.
function M.client(buffer)
  return vim.lsp.get_clients({ bufnr = buffer, name = 'caret' })[1]
end

--- Tells the user why there is no server for a request.
function M.notify_missing()
  vim.notify(status.server_problem or 'Caret is not running. Open a file first.', vim.log.levels.WARN)
end

--- Runs a command of the server, such as `caret.pause`.
function M.execute(name)
  local client = vim.lsp.get_clients({ name = 'caret' })[1]
  if client then
    client:exec_cmd({ title = name, command = name })
  else
    M.notify_missing()
  end
end

--- One server serves all files; it finds the repository of each one itself.
local function is_reusable(client, config)
  return client.name == config.name
end

local function on_exit(code, signal)
  if (code ~= 0 or signal ~= 0) and signal ~= SIGTERM then
    vim.schedule(function()
      status.on_no_server('Caret: the language server has stopped. Start it with :edit; see :checkhealth caret.')
    end)
  end
end

--- Enables the server for all files, or tells why there is none. `options` are those of setup().
function M.enable(options)
  local cmd, problem = command.find(options)
  if not cmd then
    vim.schedule(function()
      status.on_no_server(problem)
    end)
    return
  end
  vim.lsp.config('caret', {
    cmd = cmd,
    filetypes = options.filetypes,
    init_options = options.settings,
    capabilities = {
      textDocument = { inlineCompletion = vim.empty_dict() }, -- else the server sends completion lists
      experimental = { caretGrowingSuggestions = true, caretDefinitions = true },
    },
    handlers = M.handlers,
    reuse_client = is_reusable,
    on_exit = on_exit,
  })
  vim.lsp.enable('caret')
end

return M
