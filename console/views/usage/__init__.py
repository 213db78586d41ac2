"""Usage and quality by groups, the requests behind them, and each request's stages."""
