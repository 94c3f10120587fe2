{{- /* A text of the configuration as the container will read it. What only the cluster knows stays ${NAME}. */}}
{{- define "tocsin.resolve" -}}
{{- $text := toString .text }}
{{- range fromYamlArray (include "tocsin.env" .root) }}
{{- $variable := printf `\$\{%s(:-[^}]*)?\}` .name }}
{{- if .valueFrom }}
{{- $text = regexReplaceAllLiteral $variable $text (printf "${%s}" .name) }}
{{- else if .value }}
{{- $text = regexReplaceAllLiteral $variable $text .value }}
{{- end }}
{{- end }}
{{- regexReplaceAll `\$\{\w+:-([^}]*)\}` $text "${1}" }}
{{- end }}

{{- /* A section of the configuration, as YAML; one that is empty or left out is {}. */}}
{{- define "tocsin.section" -}}
{{- $section := get .config .name | default dict }}
{{- if not (kindIs "map" $section) }}
{{- fail (printf "config: %s is not a section with keys of its own; tocsin check says how to write it" .name) }}
{{- end }}
{{- toYaml $section }}
{{- end }}

{{- /* Refuses what tocsin check accepts and no pod can run with. Never quotes the configuration but for host and port. */}}
{{- define "tocsin.checkConfig" -}}
{{- $config := fromYaml .Values.config }}
{{- if hasKey $config "Error" }}
{{- fail "config: not the YAML of a configuration; tocsin check says where" }}
{{- end }}
{{- include "tocsin.checkHttp" (dict "root" . "config" $config) }}
{{- include "tocsin.checkRedis" (dict "root" . "config" $config) }}
{{- end }}

{{- define "tocsin.checkHttp" -}}
{{- $http := fromYaml (include "tocsin.section" (dict "config" .config "name" "http")) }}
{{- $host := include "tocsin.resolve" (dict "root" .root "text" ($http.host | default "127.0.0.1")) }}
{{- if regexMatch `^(127\.|localhost$|\[?::1\]?$)` $host }}
{{- fail (printf "config: http.host is %s, where no probe and no Prometheus reaches a pod; write http: {host: 0.0.0.0}" $host) }}
{{- end }}
{{- $port := include "tocsin.resolve" (dict "root" .root "text" ($http.port | default 9464)) }}
{{- if and (ne $port (toString .root.Values.port)) (not (contains "${" $port)) }}
{{- fail (printf "config: http.port is %s and the chart's port is %v; make them the same, as by --set port=%s" $port .root.Values.port $port) }}
{{- end }}
{{- end }}

{{- define "tocsin.checkRedis" -}}
{{- $redis := fromYaml (include "tocsin.section" (dict "config" .config "name" "redis")) }}
{{- $remedy := "name a Redis that the pods reach, such as redis: {url: 'rediss://redis.example.com:6379'}" }}
{{- if $redis.embedded }}
{{- fail (printf "config: redis.embedded is for one machine, and the image has no redis-server; %s" $remedy) }}
{{- end }}
{{- if not (or $redis.url_file $redis.sentinels $redis.cluster) }}
{{- $url := include "tocsin.resolve" (dict "root" .root "text" ($redis.url | default "redis://127.0.0.1:6379")) }}
{{- if regexMatch `^(unix:|rediss?://([^/]*@)?(127\.|localhost(:|/|$)|\[::1\]))` $url }}
{{- fail (printf "config: redis.url leads into the pod itself, where no Redis is; %s" $remedy) }}
{{- end }}
{{- end }}
{{- end }}
