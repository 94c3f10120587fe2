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

function parseJson({ status, body }: Answer): unknown {
  try {
    return JSON.parse(body) as unknown
  } catch {
    const isHtml = looksLikeHtml(body)
    const what = isHtml ? 'is a web page' : 'is not JSON'
    const options = { status, fault: isHtml ? ('html' as const) : undefined }
    throw new ServiceError('contract', `the answer ${what}, where the API gives JSON`, options)
  }
}
