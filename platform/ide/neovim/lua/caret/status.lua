--- The server's status: messages to the user, and a text for the status line.

local M = {}

local OFFLINE_AFTER_MS = 5000 -- shorter interruptions are not worth a message
local TEXTS = {
  ready = 'ready',
  working = 'working',
  paused = 'paused',
  offline = 'offline',
  signed_out = 'signed out',
  over_budget = 'over budget',
}

--- The last `$/caret/status`: { status, gatewayUrl, reason, keyFile }; nil: none yet.
M.last = nil
--- Why there is no server; nil: it runs, or has not been started.
M.server_problem = nil

local last_message = nil -- the last one that the user saw; nil: there is no problem
local offline_timer = nil

local function notify_once(message)
  if message ~= last_message then
    last_message = message
    vim.notify(message, vim.log.levels.WARN)
  end
end

--- Returns a sentence about what the user can fix; nil: nothing.
function M.problem(params)
  if params.status == 'offline' then
    return ('Caret: the gateway at %s cannot be reached.'):format(params.gatewayUrl)
  elseif params.status == 'over_budget' then
    return 'Caret: your budget is used up.'
  elseif params.status ~= 'signed_out' then
    return nil
  elseif params.reason == 'key_refused' then
    return 'Caret: the gateway rejected your key. It was revoked, has expired, or is wrong. Sign in with :Caret sign_in.'
  elseif params.reason == 'key_file_not_private' then
    return ('Caret: other users can read your key file, so it is not used. Run: chmod 600 %s'):format(params.keyFile)
  end
  return 'Caret: you are signed out. Sign in with :Caret sign_in.'
end

--- Returns whether the server can suggest.
function M.is_usable()
  return M.last ~= nil and (M.last.status == 'ready' or M.last.status == 'working')
end

--- Remembers the parameters of a `$/caret/status`, and tells the user about a problem.
function M.set(params)
  M.last = params
  M.server_problem = nil
  if offline_timer then
    offline_timer:stop()
    offline_timer = nil
  end
  local problem = M.problem(params)
  if params.status == 'offline' then
    offline_timer = vim.defer_fn(function()
      notify_once(problem)
    end, OFFLINE_AFTER_MS)
  elseif problem then
    notify_once(problem)
  elseif params.status == 'ready' then
    last_message = nil
  end
end

--- Tells that there is no server, or that it has stopped.
function M.on_no_server(message)
  M.last = nil
  M.server_problem = message
  notify_once(message)
end

--- Returns a text for the status line, such as 'Caret: ready'.
function M.text()
  if M.server_problem then
    return 'Caret: no server'
  end
  return 'Caret: ' .. (M.last and TEXTS[M.last.status] or 'starting')
end

return M
