import { SinkError, type Delivery, type DeliveryMember } from './sink.ts'

/** The one member of a delivery to a sink without `batch`. Throws SinkError `invalid` for any other number. */
export function soleMember({ id, members }: Delivery): DeliveryMember {
  const [member, ...others] = members
  if (member !== undefined && others.length === 0) return member
  throw new SinkError('invalid', `delivery ${id} has ${members.length} events, this sink takes one`)
}
