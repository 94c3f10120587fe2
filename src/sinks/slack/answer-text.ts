import { errors } from 'undici'

/**
 * The text of an answer, at most `maxBytes` of it as they are after unpacking: a few hundred bytes can
 * unpack to gigabytes. Throws undici's own error for more.
 */
export async function answerText(
  body: AsyncIterable<Uint8Array> | null,
  maxBytes: number,
): Promise<string> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of body ?? []) {
    bytes += chunk.byteLength
    if (bytes > maxBytes) throw new errors.ResponseExceededMaxSizeError()
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}
