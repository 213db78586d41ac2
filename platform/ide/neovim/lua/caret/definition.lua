--- Asks the buffer's other language servers where symbols are defined, and passes the places on to
--- Caret's server.

local M = {}

local METHOD = 'textDocument/definition'
local FOUND = '$/caret/definitionsFound'
local TIMEOUT_MS = 2000 -- for all servers: a later answer is not used

--- Returns the position in the client's encoding; `position` counts UTF-16 code units.
local function encode(client, buffer, position)
  local line = vim.api.nvim_buf_get_lines(buffer, position.line, position.line + 1, false)[1] or ''
  local byte = vim.str_byteindex(line, 'utf-16', position.character, false)
  local character = vim.str_utfindex(line, client.offset_encoding or 'utf-16', byte, false)
  return { line = position.line, character = character }
end

--- Returns the first place of an answer; vim.NIL: there is none.
local function place_of(result)
  local first = result and (result.uri and result or result[1])
  if not first then
    return vim.NIL
  elseif first.targetUri then
    return { uri = first.targetUri, line = (first.targetSelectionRange or first.targetRange).start.line }
  end
  return { uri = first.uri, line = first.range.start.line }
end

--- Handles `$/caret/findDefinitions`.
function M.on_question(_, params, context)
  local caret = vim.lsp.get_client_by_id(context.client_id)
  local buffer = vim.uri_to_bufnr(params.uri)
  local places, num_missing, is_sent = {}, 0, false
  local function send()
    if caret and not is_sent and not caret:is_stopped() then
      caret:notify(FOUND, { token = params.token, locations = places })
    end
    is_sent = true
  end
  for number in ipairs(params.positions) do
    places[number] = vim.NIL
  end
  for _, client in ipairs(vim.lsp.get_clients({ bufnr = buffer, method = METHOD })) do
    for number, position in ipairs(client.id ~= context.client_id and params.positions or {}) do
      num_missing = num_missing + 1
      local question = { textDocument = { uri = params.uri }, position = encode(client, buffer, position) }
      local is_running = client:request(METHOD, question, function(_, result)
        if places[number] == vim.NIL then
          places[number] = place_of(result)
        end
        num_missing = num_missing - 1
        if num_missing == 0 then
          send()
        end
      end, buffer)
      num_missing = is_running and num_missing or num_missing - 1
    end
  end
  if num_missing == 0 then
    send()
  else
    vim.defer_fn(send, TIMEOUT_MS)
  end
end

return M
