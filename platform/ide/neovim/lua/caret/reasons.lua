--- Sentences for the reasons why a request of the user has no result (`caret_ls.skip_rules`).

local SENTENCES = {
  excluded = 'This file is excluded, by the policy or by your settings.',
  secret_file = 'This file may contain secrets, so it is not sent.',
  generated_file = 'This file seems to be generated.',
  mode_off = 'Your policy or your API key does not allow inline suggestions here.',
  block_off = 'Your policy or your API key does not allow blocks here.',
  docstring_off = 'Your policy or your API key does not allow docstrings here.',
  chat_off = 'Your policy or your API key does not allow chats here.',
  edit_off = 'Your settings, your policy, your API key or the model does not allow next edits here.',
  no_model = 'No model of this installation supports this. An operator can publish one.',
  nothing_to_suggest = 'The model had nothing to suggest here.',
  overloaded = 'The gateway is busy. Try again in a moment.',
  over_budget = 'Your budget is used up.',
  signed_out = 'You are signed out, or the key was rejected. Sign in with :Caret sign_in.',
  offline = 'The gateway cannot be reached, or the connection was lost.',
  withheld = 'The answer was withheld, because it contained a secret or public code.',
  no_function = 'There is no function here, or Caret does not support docstrings in this language.',
  has_docstring = 'The function already has a docstring.',
  file_changed = 'The file has changed in the meantime. Try again.',
}
local REFUSED = 'The gateway rejected the request.'

--- Returns the sentence for a reason.
return function(reason)
  return SENTENCES[reason] or REFUSED
end
