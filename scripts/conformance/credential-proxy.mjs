// Passes requests on as they are, with a credential added: the conformance suite has no way to send one.
// Usage: node credential-proxy.mjs URL KEY; prints the URL it listens on.
import http from "node:http";

const [target, key] = process.argv.slice(2);
const { hostname, port } = new URL(target);

const server = http.createServer((request, response) => {
  const { method, url, headers } = request;
  const onward = http.request(
    { hostname, port, method, path: url, headers: { ...headers, "x-relay-key": key } },
    (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
    },
  );
  onward.on("error", () => response.destroy());
  request.pipe(onward);
});
server.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}`));
