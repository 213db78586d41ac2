--- Sentences for the reasons why a request of the user brings nothing (`caret_ls.skip_rules`).

local SENTENCES = {
  excluded = 'This file is excluded, by the policy or by your settings.',
  secret_file = 'This file looks as if it held secrets, so it is not sent.',
  generated_file = 'This file looks generated.',
  mode_off = 'Your policy or your API key allows no inline suggestions here.',
  block_off = 'Your policy or your API key allows no blocks here.',
  docstring_off = 'Your policy or your API key allows no docstrings here.',
  chat_off = 'Your policy or your API key allows no chats here.',
  edit_off = 'Next edits are off here: by your settings, your policy, your API key or the model.',
  no_model = 'No model of this installation serves this. An operator can publish one.',
  nothing_to_suggest = 'The model had nothing to suggest here.',
  overloaded = 'The gateway is busy. Try again in a moment.',
  over_budget = 'Your budget is spent.',
  signed_out = 'You are signed out, or the key is refused. Sign in with :Caret sign_in.',
  offline = 'The gateway cannot be reached, or the connection was lost.',
  withheld = 'The answer was withheld, because it contained a secret or public code.',
  no_function = 'There is no function here, or docstrings are not known for this language.',
  has_docstring = 'The function has a docstring already.',
  file_changed = 'The file has changed meanwhile. Try again.',
}
local REFUSED = 'The gateway has refused the request.'

--- Returns the sentence for a reason.
return function(reason)
  return SENTENCES[reason] or REFUSED
end
