"""The answer to a policy query: the effective policy of the client's user. Pure."""

from caret.contracts.content_exclusion import exclusion_names
from caret.contracts.policy import Mode
from inference.completion.request import Principal
from inference.gateway.protocol.frames import InvalidFrame, PolicyFrame
from inference.gateway.receive import MAX_NAME_CHARS


def answer_policy_query(principal: Principal, repository: str) -> PolicyFrame:
    """Return the user's policy for one repository. Globs of other repositories are left out.

    The code of InvalidFrame is `too_large`. Raises InvalidFrame.
    """
    if len(repository) > MAX_NAME_CHARS:
        raise InvalidFrame(
            "too_large", f"repository must have at most {MAX_NAME_CHARS} characters."
        )
    policy = principal.snapshot.policy
    exclusion = policy.content_exclusion
    names = exclusion_names(exclusion, repository)
    globs = (glob for name in names for glob in exclusion[name])
    of_key = principal.credential.modes
    modes = policy.features if of_key is None else policy.features & of_key
    return PolicyFrame(
        repository=repository,
        excluded=list(dict.fromkeys(globs)),
        modes=[mode for mode in Mode if mode in modes],
    )
