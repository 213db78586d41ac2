--- Defines :Caret, and sets the plugin up with the options of vim.g.caret unless the user calls setup().

if vim.g.loaded_caret then
  return
end
vim.g.loaded_caret = true

local COMMANDS = {
  'apply',
  'block',
  'chat',
  'discard',
  'dismiss',
  'docstring',
  'explain',
  'next',
  'pause',
  'previous',
  'resume',
  'sign_in',
  'stop',
  'suggest',
  'tests',
}

-- The first word is the command; `chat` takes a question after it. A range is the code in question.
vim.api.nvim_create_user_command('Caret', function(command)
  local name, text = command.args:match('^(%S+)%s*(.*)$')
  if vim.list_contains(COMMANDS, name) then
    local range = command.range > 0 and { command.line1, command.line2 } or nil
    require('caret')[name](text, range)
  else
    vim.notify('Unknown command: Caret ' .. command.args, vim.log.levels.ERROR)
  end
end, {
  nargs = '+',
  range = true,
  desc = 'Caret: ' .. table.concat(COMMANDS, ', '),
  complete = function(typed)
    return vim.tbl_filter(function(name)
      return vim.startswith(name, typed)
    end, COMMANDS)
  end,
})

local function set_up()
  if not require('caret').options() then
    require('caret').setup(vim.g.caret)
  end
end

if vim.v.vim_did_enter == 1 then
  vim.schedule(set_up) -- a plugin manager calls setup() after it has loaded this file
else
  vim.api.nvim_create_autocmd('VimEnter', { once = true, callback = set_up })
end
