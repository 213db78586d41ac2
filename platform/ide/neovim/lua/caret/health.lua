--- :checkhealth caret

local status = require('caret.status')

local M = {}

local STATUS_WITHIN_MS = 5000

local function check_server(cmd)
  local result = vim.system(vim.list_extend(vim.list_slice(cmd), { '--version' }), { text = true }):wait(10000)
  if result.code == 0 then
    vim.health.ok(vim.trim(result.stdout) .. ': ' .. table.concat(cmd, ' '))
    return true
  end
  vim.health.error('The language server does not start: ' .. table.concat(cmd, ' '), vim.trim(result.stderr))
end

--- Waits for the status of the running server; without one, starts it for the check.
local function wait_for_status()
  local is_running = #vim.lsp.get_clients({ name = 'caret' }) > 0
  local id = not is_running and vim.lsp.start(vim.lsp.config.caret, { attach = false })
  vim.wait(STATUS_WITHIN_MS, function()
    return status.last ~= nil and status.last.status ~= 'offline'
  end, 20)
  if id then
    vim.lsp.get_client_by_id(id):stop()
  end
  return status.last
end

local function check_status(last)
  if not last then
    return vim.health.error('The language server sends no status.', 'Look into ' .. M.log_file())
  end
  vim.health.info('Gateway: ' .. last.gatewayUrl)
  local problem = status.problem(last)
  if last.status == 'offline' then
    vim.health.error(problem, { 'Check the setting `gateway_url`, and proxies.' })
  elseif problem then
    vim.health.error(problem)
  elseif last.status == 'paused' then
    vim.health.warn('Suggestions are paused.', ':Caret resume')
  else
    vim.health.ok('Signed in.')
  end
end

--- Returns the server's log.
function M.log_file()
  local home = vim.env.XDG_STATE_HOME or vim.fs.joinpath(vim.env.HOME or '~', '.local/state')
  return vim.fs.joinpath(home, 'caret', 'caret-ls.log')
end

function M.check()
  vim.health.start('Caret')
  if vim.fn.has('nvim-0.11') == 0 then
    return vim.health.error('Caret needs Neovim 0.11 or newer.')
  end
  vim.health.ok('Neovim ' .. tostring(vim.version()))
  local options = require('caret').options()
  if not options then
    return vim.health.error('Caret is not set up.', "Call require('caret').setup().")
  end
  local cmd, problem = require('caret.command').find(options)
  if not cmd then
    return vim.health.error(problem)
  end
  if check_server(cmd) then
    check_status(wait_for_status())
    vim.health.info('Log: ' .. M.log_file())
  end
end

return M
