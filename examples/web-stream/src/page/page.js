// What the page shows is data: a list of { kind, text }. It outlives a reload together with the place in the run's events.
const kept = sessionStorage.getItem('page');
const page = kept === null ? { shown: [], run: undefined, lastEventId: 0 } : JSON.parse(kept);
addEventListener('pagehide', () => sessionStorage.setItem('page', JSON.stringify(page)));

const element = (id) => document.getElementById(id);
let source;

/** Text becomes text, never markup, whoever wrote it. */
function draw(entry) {
  const line = document.createElement('li');
  line.className = entry.kind;
  line.textContent = entry.text;
  element('log').append(line);
}

function show(kind, text) {
  const entry = { kind, text };
  page.shown.push(entry);
  draw(entry);
}

/** The entry that is being written, if one is. */
function write(delta) {
  const last = page.shown.at(-1);
  if (last?.kind !== 'desk writes') return show('desk writes', delta);
  last.text += delta;
  element('log').lastElementChild.textContent = last.text;
}

/** A message is complete. */
function finish() {
  const last = page.shown.at(-1);
  if (last?.kind !== 'desk writes') return;
  last.kind = 'desk';
  element('log').lastElementChild.className = last.kind;
}

function onEvent({ type, data, name, item }) {
  if (type === 'raw_response_event') write(data.delta);
  else if (name === 'message_output_created') finish();
  else if (name === 'tool_called') show('tool', `→ ${item.tool_name} ${item.raw_item.arguments}`);
  else if (name === 'tool_output') show('tool', `← ${item.raw_item.output}`);
}

function onEnd(note) {
  source.close();
  finish();
  page.run = undefined;
  if (note !== undefined) show('note', note);
  drawButtons();
}

function drawButtons() {
  const running = page.run !== undefined;
  element('send').disabled = running;
  element('stop').hidden = !running;
}

/** From the first event that was not seen. A lost connection comes back by itself, with the header Last-Event-ID. */
function follow() {
  source = new EventSource(`runs/${page.run}/events?lastEventId=${page.lastEventId}`);
  const on = (name, handle) =>
    source.addEventListener(name, (event) => {
      page.lastEventId = Number(event.lastEventId);
      handle(JSON.parse(event.data));
    });
  on('run', onEvent);
  on('end', ({ status }) => onEnd({ cancelled: 'Stopped.', failed: 'Something went wrong.' }[status]));
  source.addEventListener('error', () => {
    // Later: a page that is being left loses its stream first, and nothing of that is to be kept.
    setTimeout(() => source.readyState === EventSource.CLOSED && onEnd('This run is not there any more.'));
  });
}

async function ask(message) {
  show('you', message);
  element('send').disabled = true;
  const response = await fetch('runs', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ message }),
  }).catch(() => undefined);
  if (!response?.ok) {
    show('note', 'The message did not get through.');
    return drawButtons();
  }
  Object.assign(page, { run: (await response.json()).id, lastEventId: 0 });
  drawButtons();
  follow();
}

element('ask').addEventListener('submit', (event) => {
  event.preventDefault();
  void ask(element('message').value);
  element('message').value = '';
});
element('stop').addEventListener('click', () => void fetch(`runs/${page.run}/cancel`, { method: 'POST' }));

page.shown.forEach(draw);
drawButtons();
if (page.run !== undefined) follow();
