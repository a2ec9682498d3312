package httpapi

import (
	"html/template"
	"log/slog"
	"net/http"
	"sort"

	"github.com/danielgtaylor/huma/v2"
)

type docRoute struct{ Method, Path, Summary string }

type docGroup struct {
	Name   string
	Routes []docRoute
}

var docPage = template.Must(template.New("docs").Parse(`<!doctype html>
<html lang="en"><meta charset="utf-8"><title>{{.Title}} API</title><meta name="viewport" content="width=device-width">
<style>body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222}
h2{margin-top:2rem;text-transform:capitalize}table{border-collapse:collapse;width:100%}
td{padding:.3rem .6rem;border-top:1px solid #ddd;vertical-align:top}
code{font:14px ui-monospace,monospace}td:first-child{width:5rem;font-weight:600}
@media(prefers-color-scheme:dark){body{background:#111;color:#ddd}td{border-color:#333}}</style>
<h1>{{.Title}} {{.Version}}</h1><p>{{.Description}}</p>
<p><a href="/openapi.json">openapi.json</a> describes every route and field.
Send <code>Authorization: Bearer &lt;token&gt;</code> and <code>X-Workspace-Id: default</code>.
Errors are <code>application/problem+json</code> with a <code>code</code>, a <code>hint</code>
and a <code>request_id</code>.</p>
{{range .Groups}}<h2>{{.Name}}</h2><table>{{range .Routes}}<tr><td><code>{{.Method}}</code></td>
<td><code>{{.Path}}</code></td><td>{{.Summary}}</td></tr>{{end}}</table>{{end}}
</html>`))

// docs returns a handler for a page that lists the routes. The page loads nothing from other servers.
func docs(spec *huma.OpenAPI, log *slog.Logger) http.HandlerFunc {
	byTag := map[string][]docRoute{}
	for path, item := range spec.Paths {
		for method, op := range map[string]*huma.Operation{"GET": item.Get, "POST": item.Post, "PUT": item.Put,
			"PATCH": item.Patch, "DELETE": item.Delete} {
			if op != nil {
				byTag[op.Tags[0]] = append(byTag[op.Tags[0]], docRoute{method, path, op.Summary})
			}
		}
	}
	var groups []docGroup
	for name, routes := range byTag {
		sort.Slice(routes, func(i, j int) bool {
			return routes[i].Path+routes[i].Method < routes[j].Path+routes[j].Method
		})
		groups = append(groups, docGroup{name, routes})
	}
	sort.Slice(groups, func(i, j int) bool { return groups[i].Name < groups[j].Name })
	page := struct {
		Title, Version, Description string
		Groups                      []docGroup
	}{spec.Info.Title, spec.Info.Version, spec.Info.Description, groups}
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
		if err := docPage.Execute(w, page); err != nil {
			log.Warn("cannot send docs page", "request", requestID(r.Context()), "error", err)
		}
	}
}
