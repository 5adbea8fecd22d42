"""Experiments: frozen records → rows of JSON lines → tables and figures. No number is typed in between.

rows           a file of rows: appended whole, read back, resumed after a kill
stamp          what a row was made with
"""
