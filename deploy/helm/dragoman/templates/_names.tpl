{{- define "dragoman.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{/* The release's name where that says dragoman already, at most 50 characters: others get a suffix. */}}
{{- define "dragoman.fullname" -}}
{{- $name := include "dragoman.name" . -}}
{{- $made := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{- default $made .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "dragoman.selector" -}}
app.kubernetes.io/name: {{ include "dragoman.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "dragoman.labels" -}}
{{ include "dragoman.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "dragoman.configMap" -}}
{{- default (include "dragoman.fullname" .) .Values.existingConfigMap -}}
{{- end -}}

{{- define "dragoman.secret" -}}
{{- if and .Values.secrets .Values.existingSecret -}}
{{- fail "existingSecret and secrets are both set: one of them holds the secrets" -}}
{{- end -}}
{{- default (include "dragoman.fullname" .) .Values.existingSecret -}}
{{- end -}}

{{- define "dragoman.serviceAccount" -}}
{{- default (ternary (include "dragoman.fullname" .) "default" .Values.serviceAccount.create) .Values.serviceAccount.name -}}
{{- end -}}

{{- define "dragoman.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ default $.Chart.AppVersion .tag }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Deployment, or StatefulSet where each pod has a volume. */}}
{{- define "dragoman.workload" -}}
{{- ternary "StatefulSet" "Deployment" (eq .Values.journal.kind "claim") -}}
{{- end -}}

{{/* How monitors scrape a pod's admin listener, under the key of the port in their kind. */}}
{{- define "dragoman.endpoint" -}}
port: admin
path: /metrics
authorization:
  type: Bearer
  credentials:
    name: {{ include "dragoman.secret" . }}
    key: {{ .Values.adminTokenKey }}
{{- end -}}
