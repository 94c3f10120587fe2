import { z } from 'zod'

const text = z.string()
const nullableText = z.string().nullish()

export const wireTokenGrant = z.looseObject({ token: z.string().min(1) })
export type WireTokenGrant = z.infer<typeof wireTokenGrant>

export const wireTokenTest = z.looseObject({
  tenant_id: z.number().nullish(),
  api_key_id: z.number().nullish(),
  organization_id: z.number().nullish(),
  user_id: z.number().nullish(),
  user_email: nullableText,
  scopes: z.array(text).nullish(),
})
export type WireTokenTest = z.infer<typeof wireTokenTest>
