// Unfold's style is dark by a class, not by a media query.
const dark = matchMedia("(prefers-color-scheme: dark)");
const dress = () => document.documentElement.classList.toggle("dark", dark.matches);
dress();
dark.addEventListener("change", dress);
