// What this page was made with: the state to begin with, examples, and the conversions that it can show.
const DATA = JSON.parse(document.getElementById('data').textContent);
