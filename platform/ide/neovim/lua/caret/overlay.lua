--- What a module draws over the text, and its request in flight.

local M = {}

local Overlay = {}
Overlay.__index = Overlay

--- Creates an overlay. `name` is that of its namespace.
function M.new(name)
  return setmetatable({
    namespace = vim.api.nvim_create_namespace(name),
    shown = nil, -- what is visible, with its buffer; nil: nothing
    in_flight = nil, -- the request: { client, id, place }; nil: none
  }, Overlay)
end

function M.is_inserting()
  return vim.api.nvim_get_mode().mode:sub(1, 1) == 'i'
end

--- Removes what is drawn, to draw it again.
function Overlay:erase()
  vim.api.nvim_buf_clear_namespace(self.shown.buffer, self.namespace, 0, -1)
end

--- Removes what is shown.
function Overlay:clear()
  if self.shown and vim.api.nvim_buf_is_valid(self.shown.buffer) then
    self:erase()
  end
  self.shown = nil
end

--- Draws at a row and column of the buffer.
function Overlay:mark(row, column, options)
  vim.api.nvim_buf_set_extmark(self.shown.buffer, self.namespace, row, column, options)
end

--- Cancels the request in flight.
function Overlay:cancel()
  if self.in_flight then
    self.in_flight.client:cancel_request(self.in_flight.id)
    self.in_flight = nil
  end
end

--- Sends a request for a place: { buffer, client }. Calls `on_result`, unless the request is cancelled.
function Overlay:request(place, method, params, on_result)
  local is_sent, id = place.client:request(method, params, function(_, result)
    if self.in_flight and self.in_flight.place == place then
      self.in_flight = nil
      on_result(result)
    end
  end, place.buffer)
  if is_sent then
    self.in_flight = { client = place.client, id = id, place = place }
  end
end

return M
