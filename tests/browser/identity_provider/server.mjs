// An OpenID Connect provider that we did not write: panva's oidc-provider, with its own pages.
// Any password signs in. The settings come as JSON in the first argument.

import { Provider } from "oidc-provider";

const settings = JSON.parse(process.argv[2]);
const now = Date.now.bind(Date);
Date.now = () => now() + settings.clockSkewMs;

const provider = new Provider(settings.issuer, {
  clients: [
    {
      client_id: settings.clientId,
      client_secret: settings.clientSecret,
      redirect_uris: [settings.redirectUri],
      token_endpoint_auth_method: "client_secret_post",
    },
  ],
  claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["name"] },
  conformIdTokenClaims: settings.conforms,
  cookies: { keys: ["a test"] },
  findAccount: (_context, id) => ({
    accountId: id,
    claims: () => ({ sub: id, email: id, email_verified: true, name: "Grace Hopper" }),
  }),
  jwks: { keys: settings.keys },
  pkce: { required: () => true },
});

provider.use(async (context, next) => {
  if (context.path === "/token") {
    await new Promise((resolve) => setTimeout(resolve, settings.tokenDelayMs));
  }
  await next();
});

provider.listen(Number(new URL(settings.issuer).port), "127.0.0.1", () => console.log("ready"));
