// Drives `baton mcp` and `/mcp` with the official TypeScript SDK, which checks every answer against the output schema
// of its tool and throws an error of its own when one does not match.
//
// Usage: sdk-client.mjs PACKAGES BINARY URL KEY
//
// PACKAGES is the folder that holds node_modules. Fails at the first answer that is not as expected.

import assert from "node:assert/strict";
import { createRequire } from "node:module";

const [packages, binary, url, key] = process.argv.slice(2);
assert(key, "usage: sdk-client.mjs PACKAGES BINARY URL KEY");
const require = createRequire(`${packages}/`);
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = require("@modelcontextprotocol/sdk/client/stdio.js");
const { StreamableHTTPClientTransport } = require("@modelcontextprotocol/sdk/client/streamableHttp.js");

// Calls a tool that must fail, and returns the error that a model would read.
async function failure(client, name, args) {
  const result = await client.callTool({ name, arguments: args });
  assert.equal(result.isError, true, `${name} did not fail: ${JSON.stringify(result)}`);
  assert.equal(result.structuredContent, undefined, `${name}: an error has no structured content`);
  const error = JSON.parse(result.content[0].text);
  assert.equal(typeof error.message, "string");
  assert.ok(["never", "once", "after"].includes(error.retry.kind), `${name}: ${result.content[0].text}`);
  return error;
}

async function success(client, name, args) {
  const result = await client.callTool({ name, arguments: args });
  assert.ok(!result.isError, `${name} failed: ${JSON.stringify(result)}`);
  return result.structuredContent;
}

async function drive(transport, agent) {
  const client = new Client({ name: "sdk-client", version: "1" });
  await client.connect(transport);
  // The client learns the output schemas from the list.
  const { tools } = await client.listTools();
  const grouped = ["handoff", "task"];
  assert.ok(tools.every((tool) => tool.outputSchema || grouped.includes(tool.name)), "every tool has an output schema");

  const where = { venture: "typescript", repo: "acme/webshop" };
  const { session_id } = await success(client, "session_start", { agent, ...where });
  const handoff = { summary: `${agent} was here` };
  const { handoff_id } = await success(client, "session_end", { session_id, handoff });
  const shown = await success(client, "handoff_show", { handoff_id });
  assert.deepEqual(await success(client, "handoff", { action: "show", handoff_id }), shown);
  assert.equal(shown.handoff.summary, handoff.summary);
  const context = { step: 1, agent };
  const { checkpointId } = await success(client, "workflow_checkpoint_save", { sessionId: agent, context });
  const loaded = await success(client, "workflow_checkpoint_load", { checkpointId });
  assert.deepEqual(loaded.context, context);

  assert.equal((await failure(client, "session_heartbeat", { session_id })).code, "SESSION_ENDED");
  assert.equal((await failure(client, "session_show", { session_id: "nonsense" })).code, "INVALID_REQUEST");
  const missing = "ckpt_01HQXV3NK8ZZZZZZZZZZZZZZZZ";
  const notFound = await failure(client, "workflow_checkpoint_load", { checkpointId: missing });
  assert.equal(notFound.code, "CHECKPOINT_NOT_FOUND");
  await client.close();
  console.log(`${agent}: as expected`);
}

await drive(new StdioClientTransport({ command: binary, args: ["mcp", "--tools", "all"], env: process.env }), "typescript-stdio");
await drive(new StdioClientTransport({ command: binary, args: ["mcp"], env: process.env }), "typescript-default-tools");
const headers = { Authorization: `Bearer ${key}` };
const options = { requestInit: { headers } };
await drive(new StreamableHTTPClientTransport(new URL(`${url}/mcp?tools=all`), options), "typescript-http");
