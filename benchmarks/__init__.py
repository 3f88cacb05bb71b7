"""What the loop costs, measured against plainer ones on the same scripted work.

Figures are ratios within one run; nothing here is a test.
"""
