"""The steps of a fit that searches, from checked rows to a tree with its certificate.

``encode`` turns rows into binary features, ``solve`` finds the best tree over them, ``assemble``
makes the tree, its leaves and its certificate. What passes between them are frozen values:
``Search`` (what the parameters ask for), ``Problem`` (rows and features) and ``Fitted``.
"""
