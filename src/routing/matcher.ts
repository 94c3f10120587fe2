export type MatcherOperator = '=' | '!=' | '=~' | '!~' | '>=' | '>' | '<=' | '<'

/** One parsed `name op value`. */
export interface Matcher {
  /** As written, for `explain`. */
  text: string
  name: string
  operator: MatcherOperator
  value: string
  /** Against the values that the event has under `name` (several for identifier and tag). */
  matches(values: readonly string[]): boolean
}
