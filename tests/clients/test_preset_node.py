"""Node's workers, children, WebAssembly and network under `exec/node`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from presets import work_is_done

from stockade.prove.world_client import World

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.clients,
    pytest.mark.needs("world", "userns", "bwrap", "room", "node"),
]

# A module that adds two numbers, by hand from the WebAssembly core specification, section 5.
ADDS = (
    "0,97,115,109,1,0,0,0,1,7,1,96,2,127,127,1,127,3,2,1,0,7,7,1,3,97,100,100,0,0,10,9,1,7,0,32,0,32,1,106,11"
)
WORK = """
const {Worker} = require('worker_threads'), child = require('child_process'), net = require('net');
const once = (thing, event) => new Promise(done => thing.on(event, done));
if (process.argv[2] === 'child') { process.send(9); process.disconnect(); } else (async () => {
  const worker = new Worker('require("worker_threads").parentPort.postMessage(6 * 7)', {eval: true});
  console.log('worker', await once(worker, 'message'));
  console.log('fork', await once(child.fork(__filename, ['child']), 'message'));
  console.log('again', child.execFileSync(process.execPath, ['-p', '1 + 2']).toString().trim());
  const made = await WebAssembly.instantiate(new Uint8Array([BYTES]));
  console.log('wasm', made.instance.exports.add(2, 3));
  console.log('fetch', (await fetch('http://docs.test/')).status);
  const server = net.createServer(peer => peer.end('hi')).listen(0, '127.0.0.1');
  await once(server, 'listening');
  console.log('net', (await once(net.connect(server.address().port), 'data')).toString());
  server.close();
})();
""".replace("BYTES", ADDS)
CLUSTER = """
const cluster = require('cluster'), http = require('http');
if (cluster.isPrimary) {
  cluster.fork();
  cluster.on('listening', () => fetch('http://127.0.0.1:8123/').then(answer => answer.text())
    .then(text => { console.log(text); process.exit(0); }));
} else http.createServer((_, answer) => answer.end('by a worker')).listen(8123);
"""
REFUSED = "require('child_process').spawn('ls').on('error', error => console.log(error.code))"


def test_workers_children_webassembly_and_fetch(under: Any, world: World, workspace: Path) -> None:
    (workspace / "work.js").write_text(WORK)
    run = under("exec/node", ["node", "work.js"], "rules:\n  - {allow: docs.test, ports: [80]}\n")
    work_is_done(run, "worker 42", "fork 9", "again 3", "wasm 5", "fetch 200", "net hi")


def test_a_cluster_of_node_processes(under: Any, workspace: Path) -> None:
    (workspace / "cluster.js").write_text(CLUSTER)
    work_is_done(under("exec/node", ["node", "cluster.js"]), "by a worker")


def test_npm_runs_the_scripts_of_a_package(under: Any, workspace: Path) -> None:
    (workspace / "package.json").write_text('{"scripts": {"say": "node -p 6*7"}}')
    work_is_done(under("exec/node", ["npm", "run", "--silent", "--offline", "say"]), "42")


def test_node_starts_no_other_program(under: Any) -> None:
    run = under("exec/node", ["node", "-e", REFUSED])
    assert (run.out, run.code) == ("EACCES\n", 0)
    assert "add `exec: {allow: [ls]}`" in run.err
    assert under("exec/node", ["node", "-e", REFUSED], "exec: {allow: [ls]}\n").out == ""


def test_node_without_its_preset_dies_and_the_summary_says_of_what(stockade: Any) -> None:
    run = stockade(["node", "-p", "6*7"])
    assert run.code > 128
    assert "node makes code while it runs (mprotect(" in run.err
    assert "add `exec: {code: jit}`" in run.err
    assert stockade(["node", "-p", "6*7"], "exec: {code: jit}\n").out == "42\n"
