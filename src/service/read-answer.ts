import type { z } from 'zod'
import { looksLikeHtml } from './transport/error-body.ts'
import type { Answer } from './transport/failures.ts'
import { ServiceError } from './service-error.ts'

/** The body of a 2xx answer in its shape; ServiceError `contract` where it is not that. */
export function readAnswer<T>(answer: Answer, shape: z.ZodType<T>): T {
  const { status } = answer
  const parsed = shape.safeParse(parseJson(answer))
  if (parsed.success) return parsed.data
  const issue = parsed.error.issues[0]
  const place = issue?.path.join('.') || 'the answer'
  const message = `the answer has not the shape that the API describes, at ${place}: ${issue?.code}`
  throw new ServiceError('contract', message, { status })
}

/** Nothing of the API is nearly as deep; whoever walks through 100,000 levels runs out of stack. */
const maxDepth = 200

/** The value with "…" in place of what is deeper. */
function cutBelow(value: unknown, levels: number): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (levels === 0) return '…'
  const members = value as Record<string, unknown>
  for (const key of Object.keys(members)) {
    const member = members[key]
    if (typeof member === 'object') members[key] = cutBelow(member, levels - 1)
  }
  return value
}

function parseJson({ status, body }: Answer): unknown {
  try {
    return cutBelow(JSON.parse(body) as unknown, maxDepth)
  } catch {
    const isHtml = looksLikeHtml(body)
    const what = isHtml ? 'is a web page' : 'is not JSON'
    const options = { status, fault: isHtml ? ('html' as const) : undefined }
    throw new ServiceError('contract', `the answer ${what}, where the API gives JSON`, options)
  }
}
