--- The command that starts the language server: the option `cmd`, the server inside this plugin,
--- or `caret-ls` on the PATH.

local M = {}

local MIN_MINOR = 11 -- of Python 3
local PYTHONS = { 'python3', 'python', 'py', 'python3.14', 'python3.13', 'python3.12', 'python3.11' }
local BUNDLED = vim.fs.joinpath(
  vim.fs.dirname(vim.fs.dirname(vim.fs.dirname(debug.getinfo(1, 'S').source:sub(2)))),
  'server',
  'caret-ls.pyz'
)
local PRINT_VERSION = 'import sys; print("%d.%d" % sys.version_info[:2])'

M.NO_PYTHON = 'Caret needs Python 3.11 or newer, which is not on the PATH. Install it, or set the option `python`.'
M.NO_SERVER = 'Caret needs its language server: `caret-ls` is not on the PATH. Install it, or set the option `cmd`.'

--- Returns whether the program is Python 3.11 or newer.
local function is_new_enough(python)
  local is_run, process = pcall(vim.system, { python, '-I', '-c', PRINT_VERSION }, { text = true })
  local result = is_run and process:wait(5000) or { stdout = '' }
  local major, minor = (result.stdout or ''):match('^(%d+)%.(%d+)')
  return major == '3' and tonumber(minor) >= MIN_MINOR
end

--- Returns the first Python that is new enough; nil if there is none.
function M.find_python()
  for _, name in ipairs(PYTHONS) do
    local path = vim.fn.exepath(name)
    if path ~= '' and is_new_enough(path) then
      return path
    end
  end
end

--- Returns the command; nil and a message if there is none.
function M.find(options)
  if options.cmd then
    local is_there = vim.fn.executable(options.cmd[1]) == 1
    return is_there and options.cmd or nil, 'Caret: `' .. options.cmd[1] .. '` of the option `cmd` is not executable.'
  end
  if not vim.uv.fs_stat(BUNDLED) then
    return vim.fn.executable('caret-ls') == 1 and { 'caret-ls' } or nil, M.NO_SERVER
  end
  local python = options.python or M.find_python()
  if not python or vim.fn.executable(python) == 0 then
    return nil, M.NO_PYTHON
  end
  return { python, '-I', BUNDLED }
end

return M
