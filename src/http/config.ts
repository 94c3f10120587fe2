export interface HttpConfig {
  host: string
  port: number
}
