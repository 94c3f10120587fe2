{{- define "tocsin.name" -}}
{{ .Release.Name | trunc 52 | trimSuffix "-" }}
{{- end }}

{{- /* The instance is the label that becomes the job, which alert rules select. */}}
{{- define "tocsin.selector" -}}
app.kubernetes.io/name: tocsin
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- define "tocsin.labels" -}}
{{ include "tocsin.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "tocsin.image" -}}
{{ required "image.repository: say where the image is that deploy/Dockerfile builds" .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- with .Values.image.digest }}@{{ . }}{{ end }}
{{- end }}

{{- define "tocsin.configMap" -}}
{{ .Values.existingConfigMap | default (include "tocsin.name" .) }}
{{- end }}

{{- /* Variables of the container: what the chart knows, unless env says otherwise, and env. */}}
{{- define "tocsin.env" -}}
{{- $given := dict }}
{{- range .Values.env }}{{ $_ := set $given .name true }}{{ end }}
{{- $own := list (dict "name" "TOCSIN_HTTP_HOST" "value" "0.0.0.0") (dict "name" "TOCSIN_HTTP_PORT" "value" (toString .Values.port)) }}
{{- range $own }}{{ if not (hasKey $given .name) }}
- {{ toJson . }}
{{- end }}{{ end }}
{{- range .Values.env }}
- {{ toJson . }}
{{- end }}
{{- end }}
