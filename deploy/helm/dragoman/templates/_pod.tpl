{{/* The template of a pod. */}}
{{- define "dragoman.pod" -}}
metadata:
  labels:
    {{- include "dragoman.selector" . | nindent 4 }}
    {{- with .Values.podLabels }}{{ toYaml . | nindent 4 }}{{ end }}
  {{- if or .Values.podAnnotations .Values.restartOnTableChange }}
  annotations:
    {{- with .Values.podAnnotations }}{{ toYaml . | nindent 4 }}{{ end }}
    {{- if .Values.restartOnTableChange }}
    checksum/table: {{ sha256sum .Values.table }}
    {{- end }}
  {{- end }}
spec:
  serviceAccountName: {{ include "dragoman.serviceAccount" . }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ .Values.terminationGracePeriodSeconds }}
  securityContext: {{- toYaml .Values.podSecurityContext | nindent 4 }}
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.topologySpread }}
  topologySpreadConstraints:
    {{- range . }}
    - {{ toYaml . | nindent 6 | trim }}
      {{- if not (hasKey . "labelSelector") }}
      labelSelector:
        matchLabels: {{- include "dragoman.selector" $ | nindent 10 }}
      {{- end }}
    {{- end }}
  {{- end }}
  containers:
    - {{ include "dragoman.container" . | nindent 6 | trim }}
  volumes:
    - name: table
      configMap: {name: {{ include "dragoman.configMap" . }}}
    - name: secrets
      secret: {secretName: {{ include "dragoman.secret" . }}, defaultMode: 0440}
    - name: tmp
      emptyDir: {sizeLimit: 1100Mi}
    {{- if eq .Values.journal.kind "emptyDir" }}
    - name: journal
      emptyDir: {sizeLimit: {{ .Values.journal.size }}}
    {{- end }}
    {{- with .Values.extraVolumes }}{{ toYaml . | nindent 4 }}{{ end }}
{{- end -}}

{{- define "dragoman.container" -}}
name: dragoman
image: {{ include "dragoman.image" . }}
{{- with .Values.image.pullPolicy }}
imagePullPolicy: {{ . }}
{{- end }}
args:
  - serve
  - -c
  - /etc/dragoman/table.yaml
  {{- with .Values.extraArgs }}{{ toYaml . | nindent 2 }}{{ end }}
{{- with .Values.extraEnv }}
env: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.extraEnvFrom }}
envFrom: {{- toYaml . | nindent 2 }}
{{- end }}
ports:
  - {name: http, containerPort: 8080}
  - {name: admin, containerPort: 9091}
startupProbe:
  httpGet: {{ include "dragoman.probe" (list . "live") }}
  periodSeconds: 1
  failureThreshold: 30
readinessProbe:
  httpGet: {{ include "dragoman.probe" (list . "ready") }}
  periodSeconds: 5
  failureThreshold: 1
livenessProbe:
  httpGet: {{ include "dragoman.probe" (list . "live") }}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 3
resources: {{- toYaml .Values.resources | nindent 2 }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
volumeMounts:
  - {name: table, mountPath: /etc/dragoman, readOnly: true}
  - {name: secrets, mountPath: /run/secrets/dragoman, readOnly: true}
  - {name: tmp, mountPath: /tmp}
  {{- if ne .Values.journal.kind "none" }}
  - {name: journal, mountPath: /var/lib/dragoman}
  {{- end }}
  {{- with .Values.extraVolumeMounts }}{{ toYaml . | nindent 2 }}{{ end }}
{{- end -}}

{{- define "dragoman.probe" -}}
{{- $scheme := (index . 0).Values.scheme -}}
{path: /health/{{ index . 1 }}, port: http{{ if ne $scheme "HTTP" }}, scheme: {{ $scheme }}{{ end }}}
{{- end -}}
