--- The language server: starts it, and finds the client of a buffer.

local M = {}

--- Notifications of the server: the handler of each method. Other modules add theirs.
M.handlers = {}

--- Returns the client that is attached to the buffer; nil: none yet.
function M.client(buffer)
  return vim.lsp.get_clients({ bufnr = buffer, name = 'caret' })[1]
end

--- Runs a command of the server, such as `caret.pause`. Returns false if no server runs.
function M.execute(command)
  local clients = vim.lsp.get_clients({ name = 'caret' })
  if #clients == 0 then
    vim.notify('Caret is not running. Open a file first.', vim.log.levels.WARN)
    return false
  end
  for _, client in ipairs(clients) do
    client:exec_cmd({ title = command, command = command })
  end
  return true
end

--- Enables the server for all files. `options` are those of setup().
function M.enable(options)
  vim.lsp.config('caret', {
    cmd = options.cmd or { 'caret-ls' },
    filetypes = options.filetypes,
    init_options = options.settings,
    capabilities = { experimental = { caretGrowingSuggestions = true } },
    handlers = M.handlers,
    root_markers = { '.git' },
  })
  vim.lsp.enable('caret')
end

return M
