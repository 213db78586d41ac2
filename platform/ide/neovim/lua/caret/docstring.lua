--- Writes a docstring for the function at the cursor.

local sentence = require('caret.reasons')
local server = require('caret.server')

local M = {}

local function notify(reason)
  vim.notify('Caret: ' .. sentence(reason), vim.log.levels.WARN)
end

function M.write()
  local buffer = vim.api.nvim_get_current_buf()
  local client = server.client(buffer)
  if not client then
    return server.notify_missing()
  end
  local tick = vim.api.nvim_buf_get_changedtick(buffer)
  local line = vim.api.nvim_win_get_cursor(0)[1] - 1
  local params = { uri = vim.uri_from_bufnr(buffer), line = line }
  client:request('$/caret/writeDocstring', params, function(err, result)
    if err or not result then
      notify('refused')
    elseif not result.edit then
      notify(result.reason)
    elseif vim.api.nvim_buf_get_changedtick(buffer) ~= tick then
      notify('file_changed')
    else
      vim.lsp.util.apply_text_edits({ result.edit }, buffer, client.offset_encoding)
    end
  end, buffer)
end

return M
