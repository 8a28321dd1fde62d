// Reads forms with busboy: a JSON line of a Content-Type and a body in, a JSON line of the parts or the error out.
import { createInterface } from "node:readline";
import busboy from "busboy";

function parts({ type, body }) {
  return new Promise((resolve) => {
    const found = [];
    const fail = (error) => resolve({ error: String(error) });
    try {
      const reader = busboy({ headers: { "content-type": type }, defParamCharset: "utf8" });
      reader.on("field", (name, value) => found.push({ name, filename: null, content: Buffer.from(value).toString("base64") }));
      reader.on("file", (name, stream, { filename }) => {
        const pieces = [];
        const part = { name, filename: filename ?? null };
        found.push(part);
        stream.on("data", (piece) => pieces.push(piece));
        stream.on("end", () => (part.content = Buffer.concat(pieces).toString("base64")));
      });
      reader.on("error", fail);
      reader.on("close", () => resolve({ parts: found }));
      reader.end(Buffer.from(body, "base64"));
    } catch (error) {
      fail(error);
    }
  });
}

for await (const line of createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(await parts(JSON.parse(line))));
}
