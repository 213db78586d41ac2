// Unfold's dark mode depends on a class, not on a media query.
const dark = matchMedia("(prefers-color-scheme: dark)");
const dress = () => document.documentElement.classList.toggle("dark", dark.matches);
dress();
dark.addEventListener("change", dress);
