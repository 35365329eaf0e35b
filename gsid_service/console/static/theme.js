// Before anything is drawn: light or dark as chosen here, otherwise as the system says.
"use strict";
const chosen = localStorage.getItem("theme");
if (chosen) document.documentElement.dataset.theme = chosen;
