package host_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"reeve"
	"reeve/reevetest"
)

// meteo is a weather service, as far as its documentation says.
func meteo(t *testing.T, status *int) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		switch {
		case *status != 200:
			w.WriteHeader(*status)
			_, _ = w.Write([]byte(`{"error":true,"reason":"because"}`))
		case r.URL.Path == "/v1/search" && q.Get("name") == "Graz":
			_, _ = w.Write([]byte(`{"results":[{"name":"Graz","country":"Austria","latitude":47.07,"longitude":15.44}]}`))
		case r.URL.Path == "/v1/search":
			_, _ = w.Write([]byte(`{"generationtime_ms":0.1}`))
		case r.URL.Path == "/v1/forecast" && q.Get("latitude") == "47.07" && q.Get("longitude") == "15.44" &&
			q.Get("forecast_days") == "2" && q.Get("timezone") == "auto":
			_, _ = w.Write([]byte(`{"timezone":"Europe/Vienna","current":{"time":"2026-01-01T07:00","temperature_2m":-3.5,"precipitation":0.2,"wind_speed_10m":11,"weather_code":71},
				"daily":{"time":["2026-01-01","2026-01-02"],"temperature_2m_min":[-6,-2],"temperature_2m_max":[0.5,3],"precipitation_sum":[1.5,0],"weather_code":[71,3]}}`))
		default:
			t.Errorf("asked %s", r.URL)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// TestK13_UtilsAndUsers calls the packs from a script, with what they say of themselves.
func TestK13_UtilsAndUsers(t *testing.T) {
	t.Parallel()
	status := 200
	far := meteo(t, &status)
	cfg := quick(t)
	cfg.WeatherURL, cfg.GeocodingURL = far.URL, far.URL+"/"
	h := reevetest.StartWith(t, cfg)
	a := &auto{Host: h, t: t, name: "weather"}
	h.Want(201, nil, "POST", "/api/automations", call{"name": a.name, "tools": []string{"utils_atob", "utils_weather", "users_send"}, "source": `
		const w = await Utils.weather({ place: 'Graz', days: 2 });
		await Items.withItem('day:' + w.days[0].date, 'Weather of ' + w.days[0].date, async (ctx) => {
		  if (!ctx.item.isDone) await Users.send({ title: 'The weather in ' + w.name, text: w.now.sky + ', ' + w.days[0].low + ' to ' + w.days[0].high });
		});
		const texts = [];
		for (const data of ['SGVsbG8=', 'MTIz', 'w7w', '_-8', ' SGVs\nbG8 ', '']) { const s = await Utils.atob({ data }); texts.push(typeof s + ':' + s) }
		for (const f of [() => Utils.atob({ data: '?' }), () => Utils.weather({}), () => Utils.weather({ place: 'Nowhere' }), () => Utils.weather({ place: 'Graz', latitude: 1 })]) { try { await f(); texts.push('no') } catch (e) { texts.push(e.code) } }
		texts.join(' ') + (await getDocs('Users.send')).includes('Mutation: call it inside Items.withItem') + (await getDocs('Utils')).includes('Mutation:')`})
	r := a.completes()
	equal(t, r.Run.Output, "string:Hello string:123 string:ü string:ÿï string:Hello string: VALIDATION_ERROR "+
		"VALIDATION_ERROR TOOL_FAILED VALIDATION_ERRORtruefalse", "what they gave")
	told := a.told()
	if len(told) != 1 || told[0].Title != "The weather in Graz" || told[0].Body != "snow, -6 to 0.5" ||
		told[0].UserID != "owner" {
		t.Errorf("the person was told %+v", told)
	}
	a.completes()
	equal(t, len(a.told()), 1, "a done item sends nothing more")
	a.save(`await Users.send({ title: 'outside' })`, false)
	a.fails(reeve.LogicFailure, "outside Items.withItem")
	for code, class := range map[int]reeve.FailureClass{503: reeve.NetworkFailure, 429: reeve.NetworkFailure,
		401: reeve.AuthFailure, 403: reeve.PermissionFailure} {
		status = code
		a.save(`try { await Utils.weather({ place: 'Graz' }) } catch (e) {}`, false)
		a.fails(class)
	}
	status = 400
	a.save(`try { await Utils.weather({ place: 'Graz' }) } catch (e) { e.message }`, false)
	if out := a.completes().Run.Output; !strings.Contains(out, "400 because") {
		t.Errorf("a refusal says %q", out)
	}
	far.Close()
	a.save(`await Utils.weather({ place: 'Graz' })`, false)
	a.fails(reeve.NetworkFailure, "could not be reached")
}

// TestG06_WeatherObeysTheNetworkPolicy: the operator's address is no way around the guard, and is never shown.
func TestG06_WeatherObeysTheNetworkPolicy(t *testing.T) {
	t.Parallel()
	status := 200
	far := meteo(t, &status)
	cfg := quick(t)
	cfg.WeatherURL, cfg.GeocodingURL, cfg.HTTPAllow = far.URL, far.URL, nil
	h := reevetest.StartWith(t, cfg)
	a := h.Agent("other", "utils_weather")
	res := h.Call(a.ID, "utils_weather", call{"latitude": 47.07, "longitude": 15.44, "days": 2})
	if res.Code != reeve.Denied || strings.Contains(res.Message+res.Hint, strings.TrimPrefix(far.URL, "http://")) {
		t.Errorf("it said %+v", res)
	}
}
