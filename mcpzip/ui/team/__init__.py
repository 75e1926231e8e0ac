"""The page for the people of `mcpzip serve --http`: `application` admits requests, `sessions` knows who is
signed in, `person` is what one of them sees, and `pages` shows it.

Nothing of it is imported unless the config has an ``http.page``.
"""
