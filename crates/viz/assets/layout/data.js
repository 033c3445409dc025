// The data that this page was generated with: the initial state, examples, and the conversions that it can show.
const DATA = JSON.parse(document.getElementById('data').textContent);
