/** What stands where a secret could, and is none. */

const placeholder =
  /^(?:null|none|nil|n\/?a|undefined|true|false|yes|no|empty|blank|unknown|not set|unset|redacted|hidden|masked|removed|required|optional|string|str|text|int|integer|number|bool(?:ean)?|any|bytes|(?:var)?char\(\d+\)|\*+|•+|x{3,}|\.{3,}|…|[-–—_]+|\?+|\[[\p{L} _-]{0,30}\]|<[\p{L} _-]{1,40}>|\((?:redacted|hidden|none|empty|not set|optional|required)\))[,;.)"'}\]]*$/iu
const template =
  /^(?:\$\{{1,2}[^{}]{0,80}\}{1,2}|\{\{[^{}]{0,80}\}\}|%\(\w{1,30}\)s|%[sdv]|%[A-Z_]{3,40}%|\$\([^()]{0,80}\)|\$[A-Z][A-Z0-9_]{2,60}|#\{[^{}]{0,80}\}|\$\d|\$_[A-Z]{3,8}\[.{0,40}\]|!(?:Ref|Sub|GetAtt|vault|secret)\b.{0,80})[,;)"'}]*$/u
const expression =
  /^(?:(?:process\.env|os\.|env\.|req(?:uest)?\.|res(?:ponse)?\.|self\.|this\.|config\.|settings\.|args\.|options\.|params[.[]|user\.|form\.|ctx\.|data\.|input\(|getpass|Environment\.|System\.|models\.|forms\.|serializers\.|fields\.|sa\.|db\.|z\.|Joi\.|yup\.|secrets\.|vault\.|var\.|local\.|module\.|data\.|await |new |function|\(\) ?=>|lambda\b)[\w.[\]'"(){}$,=:* -]{0,120}|[a-z_]\w{0,40}(?:\.\w{1,40}){0,4}\((?:[\w., =*'"[\]-]{0,80})\)[;,]|[a-z]\w{0,40}\((?:[\w.]{0,40})\))[;,)]*$/u

/** Whether the value only takes a secret's place: `null`, `${VARIABLE}`, `********`. */
export function isPlaceholder(value: string): boolean {
  return placeholder.test(value) || template.test(value)
}

/** Names of source code that hold a number. */
const algorithm = /(?:sha|md|aes|rsa|base|utf|pbkdf|oauth)[_-]?\d{1,3}/giu
const environmentVariable = /^process\.env\.[A-Z][A-Z0-9_]*[;,)]*$/u
const path = /^(?:(?:new|await) [\w.]+|\w+(?:\.\w+)+)[;,)]*$/u

/** Of source code: `user.password`, `config.get("key")`; not `user.Summer24`, which somebody chose. */
export function isExpression(value: string): boolean {
  if (!expression.test(value)) return false
  // a value without quotes ends before one: `os.environ[`
  const code = value.replace(algorithm, 'x').replace(/[[(]$/u, '')
  if (!/[[({]/u.test(code))
    return environmentVariable.test(value) || (path.test(code) && !/\d/u.test(code))
  const isClosed = code.split(/[[({]/u).length <= code.split(/[\])}]/u).length
  return (isClosed || /[[(](["'])\w*\1$/u.test(code)) && !/[a-z_]\d{3}|\d{3}[a-z_]/iu.test(code)
}
