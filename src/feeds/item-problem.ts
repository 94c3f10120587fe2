import type { z } from 'zod'
import { cut } from './masking.ts'

const longestProblem = 300

/** The first mistake, no value of it: `tenant_metadata.tags.3: Invalid input: expected string, …`. */
export function itemProblem(error: z.ZodError): string {
  const issue = error.issues[0]
  const path = issue === undefined ? '' : issue.path.map(String).join('.')
  const problem = `${path === '' ? 'item' : path}: ${issue?.message ?? 'not readable'}`
  return cut(problem.replaceAll(/\p{Cc}/gu, ' '), longestProblem)
}
