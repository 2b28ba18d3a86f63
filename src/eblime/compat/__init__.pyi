from eblime.compat import lime as lime
